//! The images of workloads.

use serde_json::Value;

use crate::images::{Overrides, ReferenceError, pod_spec_pointer};
use crate::objects::{Object, ObjectError, Problem};

/// Whether objects of a kind run containers.
pub(super) fn is_workload(group: &str, kind: &str) -> bool {
    is_read_by_clusterctl(kind) || pod_spec_pointer(group, kind).is_some()
}

/// Whether clusterctl reads objects of a kind into a struct of its own, whatever their group.
fn is_read_by_clusterctl(kind: &str) -> bool {
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
    for object in objects.iter_mut().filter(|object| is_workload(object.group(), object.kind())) {
        let is_strict = is_read_by_clusterctl(object.kind());
        if is_strict {
            object.normalise()?;
        }
        let replace = |image: &str| {
            if is_strict { overrides.apply(label, image) } else { overrides.apply_leniently(label, image) }
        };
        for field in ["containers", "initContainers"] {
            let outcome = containers(object, field).try_for_each(|container| {
                images.extend(replace_image(container, replace)?);
                Ok(())
            });
            outcome.map_err(|problem| object.error(problem))?;
        }
    }
    Ok(images)
}

/// The containers of an object's Pods; none where there are none.
pub(super) fn containers<'a>(object: &'a mut Object, field: &str) -> impl Iterator<Item = &'a mut Value> {
    let pod = pod_spec_pointer(object.group(), object.kind()).and_then(|it| object.pointer_mut(it));
    pod.and_then(|it| it.get_mut(field)).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Replaces the image of a container, and returns the new one. A container may have none where nothing reads its type.
fn replace_image(
    container: &mut Value,
    replace: impl Fn(&str) -> Result<String, ReferenceError>,
) -> Result<Option<String>, Problem> {
    let text = |name: &str| container.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let image = text("image");
    let replaced = match replace(&image) {
        Ok(replaced) => replaced,
        Err(reason) => return Err(Problem::Image { container: text("name"), image, reason }),
    };
    if replaced != image
        && let Some(container) = container.as_object_mut()
    {
        container.insert("image".to_owned(), Value::from(replaced.as_str()));
    }
    Ok(Some(replaced).filter(|it| !it.is_empty()))
}
