//! How long something lasts, in the few letters that kubectl uses.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time between two moments: the longer, the coarser.
pub fn human_duration(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_millisecond().saturating_sub(since.as_millisecond()) / 1000;
    match seconds {
        // Clocks of two machines may differ by a little.
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two("m", seconds / MINUTE, "s", seconds % MINUTE),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two("h", seconds / HOUR, "m", seconds / MINUTE % 60),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two("d", seconds / DAY, "h", seconds / HOUR % 24),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two("y", seconds / YEAR, "d", seconds / DAY % 365),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(unit: &str, count: i64, smaller: &str, rest: i64) -> String {
    match rest {
        0 => format!("{count}{unit}"),
        _ => format!("{count}{unit}{rest}{smaller}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_the_coarser() {
        let begin: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
        for (milliseconds, expected) in [
            (-2_000, "<invalid>"),
            (-1_999, "0s"),
            (-1, "0s"),
            (0, "0s"),
            (999, "0s"),
            (1_000, "1s"),
            (119_999, "119s"),
            (120_000, "2m"),
            (121_000, "2m1s"),
            (599_000, "9m59s"),
            (600_000, "10m"),
            (10_799_000, "179m"),
            (10_800_000, "3h"),
            (10_860_000, "3h1m"),
            (28_799_000, "7h59m"),
            (28_800_000, "8h"),
            (172_799_000, "47h"),
            (172_800_000, "2d"),
            (176_400_000, "2d1h"),
            (691_199_000, "7d23h"),
            (691_200_000, "8d"),
            (63_071_999_000, "729d"),
            (63_072_000_000, "2y"),
            (63_158_400_000, "2y1d"),
            (252_287_999_000, "7y364d"),
            (252_288_000_000, "8y"),
        ] {
            let now = Timestamp::from_millisecond(begin.as_millisecond() + milliseconds).unwrap();
            assert_eq!(human_duration(begin, now), expected, "{milliseconds} ms");
        }
    }
}
