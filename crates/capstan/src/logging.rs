//! The controllers' log.
//!
//! What is logged can come from anywhere: names, messages, answers of servers. A line of the log is one event, and
//! nothing in it can steer a terminal that shows it.

use std::{
    fmt,
    fs::File,
    io::{self, IsTerminal, Write},
    path::Path,
    sync::Mutex,
};

use tracing_subscriber::{
    EnvFilter,
    field::RecordFields,
    fmt::{
        FormatFields, SubscriberBuilder,
        format::{DefaultFields, Format, Writer},
    },
};

use crate::{
    cli::LogFormat,
    printer::{harmless, harmless_line},
};

/// Kubernetes' verbosity in tracing's words.
fn filter(verbosity: u8) -> EnvFilter {
    // The client's own lines on failed requests say less than those of who sent them, and a workload cluster that is
    // away would fill the log with them.
    EnvFilter::new(match verbosity {
        0 => "warn,kube_client::client::builder=off",
        1..=2 => "info,kube_client::client::builder=off",
        3..=4 => {
            "info,kube_client::client::builder=off,capstan=debug,capstan_runtime=debug,capstan_cluster=debug,capstan_provider_local=debug"
        }
        5 => "debug,hyper=info,tower=info,rustls=info",
        _ => "trace",
    })
}

/// Logs to stderr.
#[expect(clippy::disallowed_methods, reason = "the log is not what the command prints")]
pub(crate) fn to_stderr(verbosity: u8, format: LogFormat) {
    let builder = builder(verbosity).with_ansi(io::stderr().is_terminal());
    match format {
        LogFormat::Text => builder.with_writer(io::stderr).init(),
        LogFormat::Json => builder.json().with_writer(|| JsonWriter(io::stderr())).init(),
    }
}

/// Logs to a file that only its owner can read, for commands that have something else on the screen.
pub(crate) fn to_file(verbosity: u8, path: &Path) -> io::Result<()> {
    builder(verbosity).with_ansi(false).with_writer(Mutex::new(open_private(path)?)).init();
    Ok(())
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // One that is there may be older than this rule.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

fn builder(verbosity: u8) -> SubscriberBuilder<HarmlessFields, Format, EnvFilter> {
    tracing_subscriber::fmt().with_env_filter(filter(verbosity)).fmt_fields(HarmlessFields)
}

/// Writes an event's message and fields as ever, but harmless and in one line.
struct HarmlessFields;

impl<'writer> FormatFields<'writer> for HarmlessFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&harmless_line(&text))
    }
}

/// Escapes what JSON may leave as it is, but terminals act on. A line comes whole.
struct JsonWriter<W>(W);

impl<W: Write> Write for JsonWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(harmless(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use serde_json::Value;
    use tracing::{error, info_span, subscriber::with_default};

    use super::*;

    const HOSTILE: &str = "a\u{1b}]52;c;Zm9v\u{7}\r\nERROR faked\u{9b}2J\u{202e}\u{200b}\u{2028}b";

    /// What is logged by those who log hostile text in every way.
    fn logged(log: impl FnOnce(Arc<Mutex<Vec<u8>>>)) -> String {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        log(bytes.clone());
        let bytes = bytes.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn log() {
        let span = info_span!("object", title = HOSTILE);
        let _entered = span.enter();
        let failure = io::Error::other(HOSTILE);
        error!(shown = %HOSTILE, debugged = ?HOSTILE, text = HOSTILE, error = &failure as &dyn std::error::Error, "{HOSTILE}");
    }

    /// A place that several lines are written to.
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_is_one_line_in_which_nothing_steers_a_terminal() {
        let text = logged(|bytes| {
            let writer = move || Shared(bytes.clone());
            with_default(builder(2).with_ansi(false).with_writer(writer).finish(), log);
        });
        let json = logged(|bytes| {
            let writer = move || JsonWriter(Shared(bytes.clone()));
            with_default(builder(2).json().with_writer(writer).finish(), log);
        });
        for log in [&text, &json] {
            assert_eq!(log.lines().count(), 1, "{log:?}");
            assert!(log.ends_with('\n') && log.contains("Zm9v"), "{log:?}");
            assert_eq!(log.trim_end_matches('\n'), harmless_line(log.trim_end_matches('\n')), "{log:?}");
        }
        assert!(text.contains("shown=a\\u001b]52;c;Zm9v\\u0007\\r\\nERROR faked\\u009b2J\\u202e"), "{text}");
        let event: Value = serde_json::from_str(&json).unwrap();
        for value in [&event["fields"]["shown"], &event["fields"]["message"], &event["span"]["title"]] {
            assert_eq!(value, HOSTILE, "{json}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_log_file_is_its_owners_alone_also_where_it_was_not() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("capstan-log-{}", std::process::id()));
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        drop(open_private(&path).unwrap());
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        drop(open_private(&path).unwrap());
        assert_eq!(mode(), 0o600);
        fs::remove_file(path).unwrap();
    }
}
