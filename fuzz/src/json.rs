//! Mutations of JSON that leave it JSON. Mutated bytes rarely get past a parser, and never far into an object.

use fastrand::Rng;
use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};

/// Texts that mean something to one rule or another.
const TEXTS: &[&str] = &[
    "",
    "a",
    "v1",
    "v1.30.0",
    "v1.31.0-rc.1+build",
    "1.30.0",
    "true",
    "null",
    "0%",
    "25%",
    "-1",
    "10m",
    "1h30m0s",
    "1500ms",
    "g/v1beta1",
    "a/b/c",
    "2030-01-01T00:00:00Z",
    "10.0.0.0/8",
    "fd00::/48",
    "é\u{1f980}\u{202e}\u{1b}[2J",
    "https://h:6443",
    "a\r\nb",
    "node.kubernetes.io/x",
    "${A}",
    "hunter2",
];

/// Mutates the input in place, as libFuzzer's custom mutators do, and returns its new length. What is no JSON is
/// mutated as bytes, and so is some JSON. `grow` adds to a value what a target knows to be of interest.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    keys: &[String],
    grow: impl Fn(&mut Value, &mut Rng),
) -> usize {
    let mut rng = Rng::with_seed(seed.into());
    if rng.u8(..) >= 16
        && let Ok(mut value) = serde_json::from_slice::<Value>(&data[..size])
    {
        for _ in 0..rng.usize(1..=3) {
            if rng.bool() {
                grow(&mut value, &mut rng);
            } else {
                change(&mut value, keys, max_size, &mut rng);
            }
        }
        let text = value.to_string();
        if let Some(target) = data.get_mut(..text.len().min(max_size))
            && target.len() == text.len()
        {
            target.copy_from_slice(text.as_bytes());
            return text.len();
        }
    }
    fuzzer_mutate(data, size, max_size)
}

/// A value of few parts.
pub fn any(rng: &mut Rng) -> Value {
    match rng.u8(..14) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(-1..40)),
        3 => json!(rng.i64(..)),
        4 => json!(rng.u64(..)),
        5 => json!(f64::from_bits(rng.u64(..))),
        6 => json!([]),
        7 => json!({}),
        8 => json!([any(rng)]),
        9 => json!("x".repeat(rng.usize(..300))),
        _ => json!(TEXTS[rng.usize(..TEXTS.len())]),
    }
}

/// Changes one value anywhere within. Copies together are no longer than `room`, so that several changes in a row cannot
/// fill the memory.
fn change(root: &mut Value, keys: &[String], room: usize, rng: &mut Rng) {
    let other = nth(root, &mut rng.usize(..count(root))).cloned().unwrap_or_default();
    let Some(value) = nth(root, &mut rng.usize(..count(root))) else { return };
    let key = |rng: &mut Rng| keys.get(rng.usize(..keys.len().max(1))).cloned().unwrap_or_default();
    match (value, rng.u8(..6)) {
        (value, 0) => *value = any(rng),
        (value, 1) => *value = other,
        (Value::Object(members), choice) => {
            let at = rng.usize(..members.len().max(1));
            let member = members.keys().nth(at).cloned();
            match (member, choice) {
                (Some(name), 2) => drop(members.remove(&name)),
                (Some(name), 3) => {
                    let value = members.remove(&name).unwrap_or_default();
                    members.insert(key(rng), value);
                }
                (_, 4) => drop(members.insert(key(rng), other)),
                _ => drop(members.insert(key(rng), any(rng))),
            }
        }
        (Value::Array(items), choice) => {
            let at = rng.usize(..=items.len());
            match choice {
                2 if at < items.len() => drop(items.remove(at)),
                3 => rng.shuffle(items),
                4 => items.insert(at, other),
                5 if at < items.len() => {
                    let most = room / items[at].to_string().len().max(1);
                    items.extend(vec![items[at].clone(); rng.usize(..100).min(most)]);
                }
                _ => items.insert(at, any(rng)),
            }
        }
        (Value::String(text), 2) => {
            text.truncate(text.char_indices().nth(rng.usize(..8)).map_or(0, |it| it.0))
        }
        (Value::String(text), 3) => text.insert(0, rng.char(..)),
        (Value::String(text), 4) => text.push(rng.char(' '..='~')),
        (Value::String(text), _) => text.push_str(TEXTS[rng.usize(..TEXTS.len())]),
        (value, _) => *value = any(rng),
    }
}

fn count(value: &Value) -> usize {
    1 + parts(value).map(count).sum::<usize>()
}

fn parts(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// The value of that number, counted from the outside in.
fn nth<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, number)),
        Value::Object(members) => members.values_mut().find_map(|member| nth(member, number)),
        _ => None,
    }
}

/// The members of an object, which is made one if it is none.
pub fn members(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(members) => members,
        _ => unreachable!("it is an object now"),
    }
}
