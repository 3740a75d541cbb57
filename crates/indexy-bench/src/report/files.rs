//! The files of a result.

use super::{
    csv::{csv_text, series_text},
    document::{Document, DocumentError},
    html::html_text,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

impl Document {
    /// Writes `results.json`, `results.csv`, `series.csv` and `report.html` into `directory`;
    /// returns the path of the report.
    pub fn write(&self, directory: &Path) -> Result<PathBuf, DocumentError> {
        let at = |path: PathBuf| move |source| DocumentError::Io { path, source };
        fs::create_dir_all(directory).map_err(at(directory.to_path_buf()))?;
        let json = serde_json::to_string_pretty(self).map_err(|source| DocumentError::Json {
            path: directory.join("results.json"),
            source,
        })?;
        let files = [
            ("results.json", json),
            ("results.csv", csv_text(&self.results)),
            ("series.csv", series_text(&self.results)),
            ("report.html", html_text(self)),
        ];
        for (name, text) in files {
            // A reader never meets half a file, and an interrupt never leaves one.
            let path = directory.join(name);
            let fresh = directory.join(format!("{name}.new"));
            fs::write(&fresh, text).map_err(at(fresh.clone()))?;
            fs::rename(&fresh, &path).map_err(at(path.clone()))?;
        }
        Ok(directory.join("report.html"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_survive_their_files_and_other_formats_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut document = Document::begin("core", dir.path());
        document.write(dir.path()).unwrap();
        let path = dir.path().join("results.json");
        assert_eq!(Document::read(&path).unwrap(), document);
        document.format = 99;
        fs::write(&path, serde_json::to_string(&document).unwrap()).unwrap();
        assert!(matches!(
            Document::read(&path),
            Err(DocumentError::Format { found: 99, .. })
        ));
        fs::write(&path, "{}").unwrap();
        assert!(matches!(
            Document::read(&path),
            Err(DocumentError::Json { .. })
        ));
    }
}
