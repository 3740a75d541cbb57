use super::*;

#[test]
fn versions_move_only_by_modifications() {
    let latch = Latch::new();
    let first = latch.read().unwrap();
    assert!(latch.validate(first));
    assert!(latch.lock());
    assert!(latch.is_locked());
    assert!(!latch.validate(first), "a held lock invalidates");
    assert!(!latch.try_upgrade(first));
    latch.unlock_unchanged();
    assert!(latch.validate(first), "nothing was written");
    assert!(latch.try_upgrade(first));
    latch.unlock();
    assert!(!latch.validate(first));
    assert!(!latch.try_upgrade(first));
    let second = latch.read().unwrap();
    assert_ne!(first, second);
    assert!(latch.try_upgrade(second));
    latch.unlock_obsolete();
    assert!(latch.is_obsolete() && !latch.is_locked());
    assert_eq!(latch.read(), None);
    assert!(!latch.lock());
    assert!(!latch.validate(second));
}
