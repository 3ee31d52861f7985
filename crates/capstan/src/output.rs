//! Where what a command makes goes, and how lists are laid out.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use capstan_manifest::yaml;
use serde_json::Value;

use crate::{
    cli::generate::ListFormat,
    error::CommandError,
    printer::{Output, Printer, Text, harmless_line},
};

/// Writes to a file, or to standard output if there is none or it is called `-`.
///
/// A file is written whole or not at all. A new one is for its owner alone, since manifests may hold credentials; one
/// that exists keeps its mode.
pub(crate) fn write(output: &Output, file: Option<&str>, printer: Printer) -> Result<(), CommandError> {
    let Some(file) = named(file) else { return printer.print(output) };
    let text = match output {
        Output::Text(text) => &text.plain(),
        Output::Data(data) => data,
    };
    write_whole(Path::new(file), text.as_bytes())
        .map_err(|error| CommandError::new(format!("cannot write {file}"), error))
}

/// Objects as one stream of YAML, written the same way. What goes to standard output is never in memory as a whole: a
/// release's text is as large as its objects.
pub(crate) fn write_manifests(
    objects: &[Value],
    file: Option<&str>,
    printer: Printer,
) -> Result<(), CommandError> {
    if objects.is_empty() {
        return write(&Output::Data("\n".to_owned()), file, printer);
    }
    if named(file).is_some() {
        return write(&Output::Data(yaml::to_multi_document(objects)), file, printer);
    }
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            printer.data("---\n")?;
        }
        printer.data(&yaml::to_string(object))?;
    }
    Ok(())
}

/// The file that is meant; none where it is standard output.
fn named(file: Option<&str>) -> Option<&str> {
    file.map(str::trim).filter(|it| !it.is_empty() && *it != "-")
}

fn write_whole(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let there = fs::metadata(file).ok();
    // Neither a pipe or a device nor a link that leads nowhere yet can be replaced.
    let leads_nowhere = there.is_none() && fs::symlink_metadata(file).is_ok();
    if leads_nowhere || there.as_ref().is_some_and(|it| !it.is_file()) {
        return owners_alone().create(true).truncate(true).open(file)?.write_all(bytes);
    }
    // What the name leads to is replaced, not the link.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let (beside, mut handle) = Beside::create(&file)?;
    handle.write_all(bytes)?;
    if let Some(there) = there {
        handle.set_permissions(there.permissions())?;
    }
    beside.take_place_of(&file)
}

/// Options to write a file that is for its owner alone if it is created.
fn owners_alone() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A file that vanishes unless it takes the place of another.
struct Beside {
    path: PathBuf,
    done: bool,
}

impl Beside {
    fn create(file: &Path) -> std::io::Result<(Self, fs::File)> {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let path = file.with_file_name(name);
        let handle = owners_alone().create_new(true).open(&path)?;
        Ok((Self { path, done: false }, handle))
    }

    fn take_place_of(mut self, file: &Path) -> std::io::Result<()> {
        fs::rename(&self.path, file)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A list for people or for programs.
pub(crate) fn list(format: ListFormat, value: &Value, text: impl FnOnce() -> Text) -> Output {
    match format {
        ListFormat::Text => Output::Text(text()),
        ListFormat::Yaml => Output::Data(yaml::to_string(value)),
        ListFormat::Json => Output::Data(format!("{value:#}\n")),
    }
}

/// Items below a title.
pub(crate) fn bullets(items: &[impl AsRef<str>]) -> Text {
    items.iter().fold(Text::default(), |text, item| text.and("  - ").and(item.as_ref()).ended())
}

/// Rows in columns: each column as wide as its widest cell and some padding, but for the last.
pub(crate) fn columns(rows: &[Vec<String>], least: usize, padding: usize) -> Text {
    let harmless_row = |row: &Vec<String>| row.iter().map(|cell| harmless_line(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(harmless_row).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count() + padding).max().unwrap_or(0).max(least)
    };
    let widths: Vec<usize> = (0..count.saturating_sub(1)).map(width).collect();
    let mut out = Text::default();
    for row in rows {
        let mut line = Text::default();
        for (index, cell) in row.iter().enumerate() {
            match widths.get(index).filter(|_| index + 1 < row.len()) {
                Some(width) => {
                    let missing = width.saturating_sub(cell.chars().count());
                    line.push(cell);
                    line.push(" ".repeat(missing));
                }
                None => line.push(cell),
            }
        }
        out.line(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            [["NAME", "TYPE", "URL"], ["a-long-name", "é", "u"]].map(|row| row.map(str::to_owned).to_vec());
        let text = |rows: &[Vec<String>]| columns(rows, 10, 3).plain();
        assert_eq!(text(&rows), "NAME          TYPE      URL\na-long-name   é         u\n");
        assert_eq!(text(&[]), "");
        let hostile = ["a\u{1b}[2J\n", "t", "u"].map(str::to_owned).to_vec();
        assert_eq!(text(&[hostile]), "a\\u001b[2J\\n   t         u\n");
    }

    #[test]
    fn a_new_file_is_its_owners_alone_and_an_old_one_keeps_its_mode() {
        let folder = std::env::temp_dir().join(format!("capstan-output-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("out.yaml");
        for (text, mode) in [("new", 0o600), (" after", 0o640)] {
            write(&Output::Data(text.to_owned()), file.to_str(), Printer::new()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, mode);
                fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            }
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // A link that leads nowhere yet.
            let (link, target) = (folder.join("link"), folder.join("target"));
            std::os::unix::fs::symlink(&target, &link).unwrap();
            write(&Output::Data("linked".to_owned()), link.to_str(), Printer::new()).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), "linked");
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            fs::remove_file(link).unwrap();
            fs::remove_file(target).unwrap();
        }
        let nowhere = folder.join("missing").join("out.yaml");
        let error = write(&Output::Data("text".to_owned()), nowhere.to_str(), Printer::new()).unwrap_err();
        assert!(error.message.contains("missing/out.yaml"), "{}", error.message);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_dir_all(&folder).unwrap();
    }
}
