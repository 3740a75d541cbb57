//! Which neighbouring files of images are replaced by one.
//!
//! Pure. A read looks at each file, so that there should be few; an image should be rewritten
//! seldom. From the newest file on, those are gathered that are no larger than all younger ones
//! together. Four or more of them are merged. So sizes at least double from file to file, but for
//! the last few, and an image is rewritten about once for each doubling.

#![forbid(unsafe_code)]

use std::ops::Range;

/// Fewer files are not worth a merge.
const LEAST_FILES: usize = 4;

/// Which of the files, whose sizes are given from the oldest one on, to merge.
pub(super) fn to_merge(sizes: &[u64]) -> Option<Range<usize>> {
    let (mut from, mut younger) = (sizes.len(), 0u64);
    for (i, &size) in sizes.iter().enumerate().rev() {
        let alike = i + 1 == sizes.len() || size <= younger;
        if !alike {
            break;
        }
        younger = younger.saturating_add(size);
        from = i;
    }
    (sizes.len() - from >= LEAST_FILES).then_some(from..sizes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_about_one_size_are_merged() {
        assert_eq!(to_merge(&[]), None);
        assert_eq!(to_merge(&[5, 5, 5]), None);
        assert_eq!(to_merge(&[5, 5, 5, 5]), Some(0..4));
        assert_eq!(to_merge(&[90, 5, 5, 5, 5]), Some(1..5));
        assert_eq!(to_merge(&[90, 20, 5, 5, 5, 5]), Some(1..6));
    }

    #[test]
    fn files_stay_few_and_images_are_rewritten_seldom() {
        let (mut files, mut written) = (Vec::new(), 0u64);
        for n in 1..=1000u64 {
            files.push(1);
            while let Some(group) = to_merge(&files) {
                let size = files[group.clone()].iter().sum();
                written += size;
                files.splice(group, [size]);
            }
            assert!(files.len() <= 14, "{} files after {n}", files.len());
        }
        assert_eq!(files.iter().sum::<u64>(), 1000);
        assert!(written <= 10_000, "{written} written");
    }
}
