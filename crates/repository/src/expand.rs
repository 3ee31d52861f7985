//! Stand-in until `capstan_manifest::envsubst::expand` is there: `${NAME}` and `${NAME:=default}` only.

/// Replaces variables in text.
pub(crate) fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        result.push_str(before);
        let (inner, others) = after.split_once('}').ok_or("missing closing brace")?;
        let end = inner.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(inner.len());
        let (name, default) = inner.split_at(end);
        if name.is_empty() {
            return Err("unable to parse variable name".to_owned());
        }
        let default = default.trim_start_matches([':', '=', '-']);
        let value = lookup(name).filter(|it| !it.is_empty());
        result.push_str(&value.unwrap_or_else(|| default.to_owned()));
        rest = others;
    }
    Ok(result + rest)
}
