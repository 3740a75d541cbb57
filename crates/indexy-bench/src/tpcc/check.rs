//! Consistency conditions 1 to 4 and 9 (3.3.2), and the driver's own sums.
//!
//! Cost: a scan of ORDER, NEW-ORDER, ORDER-LINE and HISTORY of the district. No transaction may run
//! meanwhile, unless the engine isolates: then all of it is read in one of its transactions, and
//! only what is in the tables is compared.

use super::{
    rows::{District, History, Order, Warehouse},
    scale::DISTRICTS,
    schema::{self, Table},
    state::State,
};
use crate::{
    application::{Done, Trouble},
    contender::Tables,
};

/// A condition of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// W_YTD is the sum of D_YTD.
    Sums = 1,
    /// D_NEXT_O_ID - 1 is the largest O_ID, and the largest NO_O_ID.
    NextOrder = 2,
    /// NO_O_ID has no gaps.
    NewOrders = 3,
    /// O_OL_CNT adds up to the number of order lines.
    Lines = 4,
    /// D_YTD is the sum of H_AMOUNT.
    History = 9,
}

impl Condition {
    fn hold(self, place: &str, holds: bool, what: impl FnOnce() -> String) -> Done<()> {
        if holds {
            return Ok(());
        }
        let number = self as u8;
        Err(Trouble::Wrong(format!(
            "consistency condition {number} is broken in {place}: {}",
            what()
        )))
    }
}

/// Holds condition 1 against warehouse `w`.
pub fn check_warehouse<T: Tables>(tables: &T, state: &State, w: u16) -> Done<()> {
    let key = schema::warehouse(w);
    let view = &tables.batch();
    let ytd = tables
        .get_in(view, Table::Warehouse as usize, &key, |row| {
            Warehouse::read(row).map(|r| r.ytd)
        })?
        .ok_or_else(|| Trouble::missing(Table::Warehouse, &key))?
        .ok_or_else(|| Trouble::garbled(Table::Warehouse))?;
    let (mut sum, mut districts) = (0, 0);
    tables.scan_in(
        view,
        Table::District as usize,
        &key,
        &key.end(),
        |_, row| {
            districts += u8::from(District::read(row).is_some());
            sum += District::read(row).map_or(0, |r| r.ytd);
            true
        },
    )?;
    let place = format!("warehouse {w}");
    Condition::Sums.hold(&place, ytd == sum && districts == DISTRICTS, || {
        format!("W_YTD is {ytd}, the sum of D_YTD of {districts} districts {sum}")
    })?;
    if tables.isolates() {
        return Ok(());
    }
    super::transactions::expect(Table::Warehouse, "W_YTD", ytd, state.warehouse(w).ytd)
}

/// Holds conditions 2, 3, 4 and 9 against district `d` of warehouse `w`; returns how many rows were
/// seen.
pub fn check_district<T: Tables>(tables: &T, state: &State, w: u16, d: u8) -> Done<u64> {
    let key = schema::district(w, d);
    let view = &tables.batch();
    let (next, ytd) = tables
        .get_in(view, Table::District as usize, &key, |row| {
            District::read(row).map(|r| (r.next_order, r.ytd))
        })?
        .ok_or_else(|| Trouble::missing(Table::District, &key))?
        .ok_or_else(|| Trouble::garbled(Table::District))?;
    let orders = seen(tables, view, Table::Order, &key)?;
    let waiting = seen(tables, view, Table::NewOrder, &key)?;
    let place = format!("district {w}/{d}");

    let largest = |of: &Seen| of.ends.map(|(_, last)| last);
    let newest_waits = waiting.rows == 0 || largest(&waiting) == largest(&orders);
    let holds = largest(&orders) == Some(next.wrapping_sub(1)) && newest_waits;
    Condition::NextOrder.hold(&place, holds, || {
        let (order, waiting) = (largest(&orders), largest(&waiting));
        format!(
            "D_NEXT_O_ID is {next}, the largest O_ID {order:?}, the largest NO_O_ID {waiting:?}"
        )
    })?;
    let span = waiting
        .ends
        .map_or(0, |(first, last)| u64::from(last - first) + 1);
    Condition::NewOrders.hold(&place, span == waiting.rows, || {
        format!("NO_O_ID spans {span}, of which {} are there", waiting.rows)
    })?;
    let mut lines = 0;
    tables.scan_in(view, Table::OrderLine as usize, &key, &key.end(), |_, _| {
        lines += 1;
        true
    })?;
    Condition::Lines.hold(&place, orders.lines == lines, || {
        format!(
            "O_OL_CNT adds up to {}, and {lines} lines are there",
            orders.lines
        )
    })?;
    let (payments, sum) = paid(tables, view, &key)?;
    Condition::History.hold(&place, ytd == sum, || {
        format!("D_YTD is {ytd}, {payments} rows of HISTORY add up to {sum}")
    })?;
    let rows = orders.rows + waiting.rows + lines + payments;
    if tables.isolates() {
        return Ok(rows);
    }
    let known = state.district(w, d);
    super::transactions::expect(Table::District, "D_NEXT_O_ID", next, known.next_order)?;
    super::transactions::expect(Table::District, "D_YTD", ytd, known.ytd)?;
    Ok(rows)
}

/// How many payments HISTORY has for a district, and their sum.
fn paid<T: Tables>(tables: &T, view: &T::Batch<'_>, district: &schema::Key) -> Done<(u64, i64)> {
    let (mut rows, mut sum, mut garbled) = (0, 0, false);
    let table = Table::History;
    tables.scan_in(view, table as usize, district, &district.end(), |_, row| {
        rows += 1;
        match History::read(row) {
            Some(history) => sum += history.amount,
            None => garbled = true,
        }
        true
    })?;
    if garbled {
        return Err(Trouble::garbled(table));
    }
    Ok((rows, sum))
}

/// What a scan of a district's orders saw.
struct Seen {
    rows: u64,
    /// Smallest and largest number.
    ends: Option<(u32, u32)>,
    /// Sum of O_OL_CNT.
    lines: u64,
}

fn seen<T: Tables>(
    tables: &T,
    view: &T::Batch<'_>,
    table: Table,
    district: &schema::Key,
) -> Done<Seen> {
    let mut seen = Seen {
        rows: 0,
        ends: None,
        lines: 0,
    };
    let mut garbled = false;
    tables.scan_in(
        view,
        table as usize,
        district,
        &district.end(),
        |key, row| {
            seen.rows += 1;
            let number = schema::last_number(key).unwrap_or(0);
            let (first, last) = seen.ends.unwrap_or((number, number));
            seen.ends = Some((first.min(number), last.max(number)));
            if table == Table::Order {
                let order = Order::read(row);
                garbled |= order.is_none();
                seen.lines += order.map_or(0, |o| u64::from(o.lines));
            }
            true
        },
    )?;
    if garbled {
        return Err(Trouble::garbled(table));
    }
    Ok(seen)
}
