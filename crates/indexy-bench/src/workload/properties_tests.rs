//! Properties from files and arguments.

use super::*;

#[test]
fn reads_what_java_reads() {
    let mut p = Properties::default();
    p.read(
        "# comment\n! too\n\n recordcount=5\noperationcount: 7\nfieldcount \
        3\nrequestdistribution=zip\\\n  fian\n",
    )
    .unwrap();
    assert_eq!(p.get::<u64>("recordcount").unwrap(), 5);
    assert_eq!(p.get::<u64>("operationcount").unwrap(), 7);
    assert_eq!(p.get::<u64>("fieldcount").unwrap(), 3);
    assert_eq!(p.text("requestdistribution"), Some("zipfian"));
}

fn read(text: &str) -> Result<Vec<(String, String)>, PropertyError> {
    let mut p = Properties::default();
    p.read(text)?;
    let all = p.iter().map(|(n, v)| (n.to_owned(), v.to_owned()));
    Ok(all.collect())
}

#[track_caller]
fn reads(text: &str, expected: &[(&str, &str)]) {
    let read = read(text).unwrap();
    let read: Vec<(&str, &str)> = read.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(read, expected, "{text:?}");
}

#[test]
fn only_an_odd_number_of_backslashes_joins_lines() {
    reads(
        "exportfile=C:\\\\out\\\\\nrecordcount=1000000\n",
        &[("exportfile", "C:\\out\\"), ("recordcount", "1000000")],
    );
    reads(
        "exportfile=a\\\\\\\r\n \t\u{c}b\r\nrecordcount=5\rtarget=6",
        &[
            ("exportfile", "a\\b"),
            ("recordcount", "5"),
            ("target", "6"),
        ],
    );
    // What goes on is no comment; a blank line, or the end, ends it.
    reads("table=a\\\n#b", &[("table", "a#b")]);
    reads(
        "table=a\\\n\nrecordcount=5\\",
        &[("recordcount", "5"), ("table", "a")],
    );
    reads("\\\n", &[]);
}

#[test]
fn escapes_stand_for_characters() {
    reads(
        "requestdistribution=zip\\u0066ian",
        &[("requestdistribution", "zipfian")],
    );
    reads("r\\u0065cord\\count=\\5", &[("recordcount", "5")]);
    reads(
        "table=\\ a\\tb\\nc\\rd\\fe\\=",
        &[("table", " a\tb\nc\rd\u{c}e=")],
    );
    reads(
        "table=\\ud83d\\ude00\u{e9}",
        &[("table", "\u{1f600}\u{e9}")],
    );
    for half in ["table=\\u00", "table=\\u+123", "table=\\ud83d"] {
        let error = read(half).unwrap_err();
        assert!(matches!(error, PropertyError::Malformed { .. }), "{half}");
    }
}

#[test]
fn a_name_ends_at_the_first_separator_that_is_not_escaped() {
    let error = read("a\\:b=c").unwrap_err();
    let unknown = |name: &str| PropertyError::Unknown {
        name: name.to_owned(),
    };
    assert_eq!(error, unknown("a:b"));
    reads("measurement.a\\:b\\ \\=c=d", &[("measurement.a:b =c", "d")]);
    reads("table\u{c}=\t=a:b c \n", &[("table", "=a:b c")]);
    let error = read("table").unwrap_err();
    assert!(matches!(error, PropertyError::Malformed { .. }));
}

#[test]
fn an_argument_is_taken_as_it_stands() {
    let mut p = Properties::default();
    p.set_line("exportfile=C:\\new\\").unwrap();
    assert_eq!(p.text("exportfile"), Some("C:\\new\\"));
}

#[test]
fn later_values_win_and_defaults_fill() {
    let mut p = Properties::default();
    p.set_line("recordcount=5").unwrap();
    p.set_line("recordcount=6").unwrap();
    assert_eq!(p.get::<u64>("recordcount").unwrap(), 6);
    assert_eq!(p.get::<u64>("fieldlength").unwrap(), 100);
    assert_eq!(p.get_if_set::<u64>("insertcount").unwrap(), None);
}

#[test]
fn an_unknown_name_lists_the_valid_ones() {
    let message = Properties::default()
        .set_line("recordcnt=5")
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("recordcnt")
            && message.contains("recordcount")
            && message.contains("maxscanlength")
    );
}

#[test]
fn a_bad_value_names_its_property() {
    let mut p = Properties::default();
    p.set_line("recordcount=many").unwrap();
    let message = p.get::<u64>("recordcount").unwrap_err().to_string();
    assert_eq!(
        message,
        "property recordcount=many: not a valid whole number"
    );
    assert!(matches!(
        p.set_line("novalue"),
        Err(PropertyError::Malformed { .. })
    ));
}

#[test]
fn properties_about_measuring_are_accepted() {
    let mut p = Properties::default();
    p.set_line("measurementtype=hdrhistogram").unwrap();
    p.set_line("hdrhistogram.percentiles=95,99").unwrap();
}
