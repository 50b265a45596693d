//! The house: data flows one way.

use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files of a module, which is a file, a folder, or both.
fn files_of(module: &str) -> Vec<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.join(format!("{module}.rs"))];
    let mut folders = vec![source.join(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs") && path.exists());
    files
}

/// The modules that a text uses by paths that begin with `crate::`, comments and tests aside.
fn used_by(text: &str) -> Vec<&str> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let paths = code.flat_map(|line| line.split("crate::").skip(1));
    paths
        .map(|path| path.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
        .collect()
}

#[test]
fn a_module_uses_only_those_before_it() {
    let library = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let names = library
        .lines()
        .map(|line| line.trim_start_matches("pub "))
        .filter_map(|line| line.strip_prefix("mod "));
    let modules: Vec<&str> = names.map(|line| line.trim_end_matches(';')).collect();
    let mut uses = 0;
    for (place, module) in modules.iter().enumerate() {
        let files = files_of(module);
        assert!(!files.is_empty(), "{module}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for used in used_by(&text) {
                let Some(other) = modules.iter().position(|module| *module == used) else { continue };
                assert!(other <= place, "{} uses {used}, which comes after {module}", file.display());
                uses += 1;
            }
        }
    }
    assert!(modules.len() > 30 && uses > 100, "{} modules, {uses} uses", modules.len());
}
