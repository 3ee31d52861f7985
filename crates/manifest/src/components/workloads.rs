//! The images of Deployments and DaemonSets.

use serde_json::Value;

use crate::images::Overrides;
use crate::objects::{Object, ObjectError, Problem};

/// Whether objects of a kind run containers that upstream looks at.
pub(super) fn is_workload(kind: &str) -> bool {
    matches!(kind, "Deployment" | "DaemonSet")
}

/// Replaces what the overrides say, and returns the images that are in use then: of each object those of its
/// containers, then those of its init containers.
pub(super) fn replace_images(
    objects: &mut [Object],
    overrides: &Overrides,
    label: &str,
) -> Result<Vec<String>, ObjectError> {
    let mut images = Vec::new();
    for object in objects.iter_mut().filter(|object| is_workload(object.kind())) {
        object.normalise()?;
        for field in ["containers", "initContainers"] {
            let outcome = containers(object, field).try_for_each(|container| {
                images.push(replace_image(container, overrides, label)?);
                Ok(())
            });
            outcome.map_err(|problem| object.error(problem))?;
        }
    }
    Ok(images)
}

/// The containers of an object's pods; none where there are none.
pub(super) fn containers<'a>(object: &'a mut Object, field: &str) -> impl Iterator<Item = &'a mut Value> {
    let pod = object.at("spec").and_then(|it| it.get_mut("template")).and_then(|it| it.get_mut("spec"));
    pod.and_then(|it| it.get_mut(field)).and_then(Value::as_array_mut).into_iter().flatten()
}

fn replace_image(container: &mut Value, overrides: &Overrides, label: &str) -> Result<String, Problem> {
    let text = |name: &str| container.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let image = text("image");
    match overrides.apply(label, &image) {
        Ok(replaced) => {
            if let Some(container) = container.as_object_mut() {
                container.insert("image".to_owned(), Value::from(replaced.as_str()));
            }
            Ok(replaced)
        }
        Err(reason) => Err(Problem::Image { container: text("name"), image, reason }),
    }
}
