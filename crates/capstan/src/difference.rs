//! What a command would do, printed before it is done.

use capstan_lifecycle::diff::{Action, CrdChange, Line, LostChange, Preview, ProviderPreview, Sign, Summary};
use capstan_management::ObjectRef;
use serde_json::{Value, json};

use crate::{
    cli::generate::ListFormat,
    error::CommandError,
    output,
    printer::{Printer, Text, bold, dim, green, red, yellow},
};

/// Prints what would be done: a summary, and the objects' differences where they are asked for.
pub(crate) fn print(
    preview: &Preview,
    with_differences: bool,
    format: ListFormat,
    printer: Printer,
) -> Result<(), CommandError> {
    let value = value(preview, with_differences);
    printer.print(&output::list(format, &value, || text(preview, with_differences)))
}

/// What the server would not accept, as one error; nothing if it accepts everything.
pub(crate) fn refused(preview: &Preview) -> Option<CommandError> {
    let count = preview.refusals.len();
    let objects = if count == 1 { "object".to_owned() } else { format!("{count} objects") };
    let mut error =
        CommandError::plain(format!("the server would not accept {objects}; nothing was changed"))
            .hint("repair the release or the variables that it is rendered with, or use another version");
    error.causes = preview.refusals.iter().map(ToString::to_string).collect();
    (count > 0).then_some(error)
}

fn value(preview: &Preview, with_differences: bool) -> Value {
    let mut value = json!(preview);
    if !with_differences {
        let providers = value["providers"].as_array_mut().into_iter().flatten();
        let objects = providers.filter_map(|it| it.get_mut("objects")?.as_array_mut()).flatten();
        objects.filter_map(Value::as_object_mut).for_each(|it| drop(it.remove("difference")));
    }
    value
}

fn text(preview: &Preview, with_differences: bool) -> Text {
    let mut out = Page::default();
    for provider in &preview.providers {
        out.line(0, bold(&provider.provider).and(": ").and(counts(provider)));
        out.summary(&provider.summary);
        if with_differences {
            out.differences(provider);
        }
    }
    if !preview.refusals.is_empty() {
        out.line(0, red("would not be accepted"));
        preview.refusals.iter().for_each(|it| out.line(1, it.to_string()));
    }
    if !preview.notes.is_empty() {
        out.line(0, "notes");
        preview.notes.iter().for_each(|it| out.line(1, it));
    }
    out.0
}

/// How many objects come, change, go and stay.
fn counts(provider: &ProviderPreview) -> String {
    let words = [
        (Action::Created, "created"),
        (Action::Changed, "changed"),
        (Action::Deleted, "deleted"),
        (Action::Unchanged, "unchanged"),
    ];
    let counts = words.map(|(action, word)| (provider.those(action).count(), word));
    let counts: Vec<_> =
        counts.iter().filter(|it| it.0 > 0).map(|(count, word)| format!("{count} {word}")).collect();
    if counts.is_empty() { "nothing to do".to_owned() } else { counts.join(", ") }
}

#[derive(Default)]
struct Page(Text);

impl Page {
    fn line(&mut self, depth: usize, text: impl Into<Text>) {
        self.0.line(Text::from("  ".repeat(depth)).and(text));
    }

    fn added(&mut self, depth: usize, text: &str) {
        self.line(depth, green(&format!("+ {text}")));
    }

    fn removed(&mut self, depth: usize, text: &str) {
        self.line(depth, red(&format!("- {text}")));
    }

    /// A title, unless there is nothing below it.
    fn title(&mut self, title: impl Into<Text>, is_empty: bool) {
        if !is_empty {
            self.line(1, title);
        }
    }

    fn summary(&mut self, summary: &Summary) {
        self.title("kinds", summary.crds.is_empty());
        summary.crds.iter().for_each(|it| self.crd(it));
        self.title("permissions", summary.roles.is_empty());
        for change in &summary.roles {
            self.line(2, change.role.to_string());
            change.gained.iter().for_each(|it| self.added(3, it));
            change.lost.iter().for_each(|it| self.removed(3, it));
        }
        self.title("webhooks", summary.webhooks_added.is_empty() && summary.webhooks_removed.is_empty());
        summary.webhooks_added.iter().for_each(|it| self.added(2, it));
        summary.webhooks_removed.iter().for_each(|it| self.removed(2, it));
        self.title("images", summary.images.is_empty());
        for change in &summary.images {
            let place = container(&change.workload, &change.container);
            match (&change.from, &change.to) {
                (Some(from), Some(to)) => self.line(2, format!("{place}: {from} -> {to}")),
                (None, Some(to)) => self.added(2, &format!("{place}: {to}")),
                (Some(from), None) => self.removed(2, &format!("{place}: {from}")),
                (None, None) => {}
            }
        }
        self.title("arguments", summary.arguments.is_empty());
        for change in &summary.arguments {
            self.line(2, container(&change.workload, &change.container));
            change.added.iter().for_each(|it| self.added(3, it));
            change.removed.iter().for_each(|it| self.removed(3, it));
        }
        self.title(yellow("changed by hand, would be lost"), summary.lost.is_empty());
        summary.lost.iter().for_each(|it| self.lost(it));
    }

    fn crd(&mut self, change: &CrdChange) {
        let versions = |versions: &[String]| versions.join(", ");
        let (added, removed) = (versions(&change.versions_added), versions(&change.versions_removed));
        match change.action {
            Action::Created => self.added(2, &format!("{} ({added})", change.name)),
            Action::Deleted => self.removed(2, &format!("{} ({removed})", change.name)),
            Action::Changed | Action::Unchanged => {
                self.line(2, &change.name);
                change.versions_added.iter().for_each(|it| self.added(3, it));
                change.versions_removed.iter().for_each(|it| self.removed(3, it));
            }
        }
    }

    fn lost(&mut self, change: &LostChange) {
        let LostChange { object, field, manager, from, to } = change;
        let to = to.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
        let change = Text::from(format!("{object} {field}: {from} -> {to} "));
        self.line(2, change.and(dim(&format!("(by {manager})"))));
    }

    fn differences(&mut self, provider: &ProviderPreview) {
        for preview in provider.objects.iter().filter(|it| it.action != Action::Unchanged) {
            let word = match preview.action {
                Action::Created => "create",
                Action::Deleted => "delete",
                Action::Changed | Action::Unchanged => "change",
            };
            self.line(0, bold(&format!("{word} {}", preview.object)));
            preview.difference.iter().for_each(|it| self.line(0, coloured(it)));
        }
    }
}

fn container(workload: &ObjectRef, container: &str) -> String {
    format!("{workload} {container}")
}

fn coloured(line: &Line) -> Text {
    let text = line.to_string();
    match line.sign {
        Sign::Added => green(&text),
        Sign::Removed => red(&text),
        Sign::Gap => dim(&text),
        Sign::Kept => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use capstan_lifecycle::diff::{ArgumentChange, ImageChange, ObjectPreview, RoleChange};

    use super::*;

    fn object(kind: &str, name: &str) -> ObjectRef {
        ObjectRef {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some("acme-system".to_owned()),
            name: name.to_owned(),
        }
    }

    fn sample() -> Preview {
        let texts = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let line = |sign, text: &str| Line { sign, text: text.to_owned() };
        let crd = |name: &str, action, added: &[&str], removed: &[&str]| CrdChange {
            name: name.to_owned(),
            action,
            versions_added: texts(added),
            versions_removed: texts(removed),
        };
        let (workload, container) = (object("Deployment", "d"), "manager".to_owned());
        let summary = Summary {
            crds: vec![
                crd("a.x", Action::Created, &["v1", "v2"], &[]),
                crd("b.x", Action::Changed, &["v2"], &["v1"]),
            ],
            roles: vec![RoleChange {
                role: object("Role", "r"),
                gained: texts(&["get: secrets"]),
                lost: texts(&["list: pods"]),
            }],
            webhooks_added: texts(&["w: one"]),
            webhooks_removed: Vec::new(),
            images: vec![ImageChange {
                workload: workload.clone(),
                container: container.clone(),
                from: Some("i:1".to_owned()),
                to: Some("i:2".to_owned()),
            }],
            arguments: vec![ArgumentChange {
                workload: workload.clone(),
                container,
                added: texts(&["--v=0"]),
                removed: texts(&["--v=5"]),
            }],
            lost: vec![LostChange {
                object: workload.clone(),
                field: "spec.replicas".to_owned(),
                manager: "kubectl-edit".to_owned(),
                from: json!(3),
                to: None,
            }],
        };
        let objects = vec![
            ObjectPreview {
                object: workload,
                action: Action::Changed,
                difference: vec![
                    line(Sign::Kept, "spec:"),
                    line(Sign::Removed, "  replicas: 3"),
                    line(Sign::Gap, "-9 +8"),
                    line(Sign::Added, "  x: y"),
                ],
                fields: Vec::new(),
            },
            ObjectPreview {
                object: object("ConfigMap", "c"),
                action: Action::Unchanged,
                difference: Vec::new(),
                fields: Vec::new(),
            },
        ];
        let provider = ProviderPreview { provider: "infrastructure-acme".to_owned(), summary, objects };
        Preview { providers: vec![provider], refusals: Vec::new(), notes: texts(&["w could not be asked"]) }
    }

    const SUMMARY: &str = "\
infrastructure-acme: 1 changed, 1 unchanged
  kinds
    + a.x (v1, v2)
    b.x
      + v2
      - v1
  permissions
    Role acme-system/r
      + get: secrets
      - list: pods
  webhooks
    + w: one
  images
    Deployment acme-system/d manager: i:1 -> i:2
  arguments
    Deployment acme-system/d manager
      + --v=0
      - --v=5
  changed by hand, would be lost
    Deployment acme-system/d spec.replicas: 3 -> nothing (by kubectl-edit)
";
    const DIFFERENCE: &str = "\
change Deployment acme-system/d
 spec:
-  replicas: 3
@@ -9 +8
+  x: y
";
    const NOTES: &str = "\
notes
  w could not be asked
";

    #[test]
    fn people_read_a_summary_and_the_differences_on_demand() {
        let plain = |with_differences| text(&sample(), with_differences).plain();
        assert_eq!(plain(false), format!("{SUMMARY}{NOTES}"));
        assert_eq!(plain(true), format!("{SUMMARY}{DIFFERENCE}{NOTES}"));
        let line = |sign, text: &str| Line { sign, text: text.to_owned() };
        assert_eq!(coloured(&line(Sign::Removed, "x")), red("-x"));
        assert_eq!(coloured(&line(Sign::Added, "x")), green("+x"));
    }

    #[test]
    fn machines_get_the_differences_on_demand_too() {
        assert_eq!(value(&sample(), false)["providers"][0]["objects"][0].get("difference"), None);
        assert_eq!(value(&sample(), true)["providers"][0]["objects"][0]["difference"][1], "-  replicas: 3");
    }

    #[test]
    fn what_is_refused_is_named() {
        let mut preview = sample();
        assert!(refused(&preview).is_none());
        let reason = "spec.x: Required value".to_owned();
        preview
            .refusals
            .push(capstan_management::dry_run::Refusal { object: object("Service", "s"), reason });
        let error = refused(&preview).unwrap();
        assert_eq!(error.causes, ["Service acme-system/s: spec.x: Required value"]);
        assert!(text(&preview, false).plain().contains("Service acme-system/s: spec.x: Required value"));
    }
}
