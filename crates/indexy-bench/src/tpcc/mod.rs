//! TPC-C: nine tables, five transactions, five of the consistency conditions.
//!
//! Source: TPC Benchmark C, revision 5.11; IndeXY III-F. The rows, random values, initial population, the profiles of the transactions and the
//! share of the mix are the specification's. What is left out: terminals with their key and think times (each
//! thread goes on at once, so that rates are those of the engine and no official tpmC), a home warehouse per thread (each
//! transaction draws one), the queue of deferred deliveries (they run at once, one batch per district) and the 60-day space rules.
//!
//! Isolation is the driver's (`state.rs`): locks on warehouses, districts and stripes of stock, taken in one order before the first
//! read. A transaction's writes are one atomic batch; a rollback drops it. The driver knows each district's next order and each sum
//! of payments, and holds every read of them against that.
//! Not here: threads, clocks and results (`harness/tpcc.rs`), which jobs there are (`suite/tpcc.rs`).

mod check;
mod load;
mod random;
mod rows;
mod schema;
mod state;
mod transactions;

pub use check::{Condition, check_district, check_warehouse};
pub use load::Loader;
pub use random::Constants;
pub use schema::{TABLES, Table, names};
pub use state::State;
pub use transactions::{Ended, Transaction, Transactions};

use crate::contender::{Fault, Others};
use serde::{Deserialize, Serialize};

/// Districts of a warehouse.
pub const DISTRICTS: u8 = 10;
/// Items, and stock rows of a warehouse, by the specification.
pub const ITEMS: u32 = 100_000;
/// Customers of a district, by the specification; it begins with as many orders.
pub const CUSTOMERS: u32 = 3000;

/// How large the database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// Warehouses, from 1 on.
    pub warehouses: u16,
    /// Items; fewer than [`ITEMS`] is not the specification's database.
    pub items: u32,
    /// Customers of a district; fewer than [`CUSTOMERS`] is not the specification's database.
    pub customers: u32,
}

impl Scale {
    /// The specification's database of so many warehouses.
    pub fn full(warehouses: u16) -> Self {
        Self {
            warehouses,
            items: ITEMS,
            customers: CUSTOMERS,
        }
    }

    /// Orders of a district that are not delivered when it is loaded: 900 of 3000.
    pub fn undelivered(&self) -> u32 {
        self.customers * 3 / 10
    }

    /// Rows of the loaded database and the entries of its two secondary indexes; order lines by their mean.
    pub fn entries(&self) -> u64 {
        const MEAN_LINES: u64 = 10;
        let customers = u64::from(self.customers);
        // Customer and its name, history, order and its customer, lines.
        let district = customers * (5 + MEAN_LINES) + u64::from(self.undelivered()) + 1;
        let warehouse = 1 + u64::from(self.items) + u64::from(DISTRICTS) * district;
        u64::from(self.items) + u64::from(self.warehouses) * warehouse
    }

    /// Bytes of keys and values of the loaded database, roughly.
    pub fn bytes(&self) -> u64 {
        const STOCK_BYTES: u64 = 310;
        const ITEM_BYTES: u64 = 90;
        // A customer of 560, its name's entry, a history row, an order with its index and ten lines.
        const CUSTOMER_BYTES: u64 = 560 + 45 + 60 + 50 + 520;
        let stock = u64::from(self.warehouses) * u64::from(self.items) * STOCK_BYTES;
        let districts = u64::from(self.warehouses) * u64::from(DISTRICTS);
        let customers = districts * u64::from(self.customers) * CUSTOMER_BYTES;
        stock + customers + u64::from(self.items) * ITEM_BYTES
    }
}

/// Which transactions are run, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// New-Order 45 %, Payment 43 %, Order-Status, Delivery and Stock-Level 4 % each.
    Standard,
    /// New-Order and Payment, half and half.
    Paper,
}

impl Mix {
    /// Of 100 transactions, how many are of each kind.
    pub fn shares(self) -> [(Transaction, u32); 5] {
        use Transaction::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
        match self {
            Mix::Standard => [
                (NewOrder, 45),
                (Payment, 43),
                (OrderStatus, 4),
                (Delivery, 4),
                (StockLevel, 4),
            ],
            Mix::Paper => [
                (NewOrder, 50),
                (Payment, 50),
                (OrderStatus, 0),
                (Delivery, 0),
                (StockLevel, 0),
            ],
        }
    }
}

/// What all steps of a run have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// How large the database is.
    pub scale: Scale,
    /// What is run on it.
    pub mix: Mix,
    /// Which indexes the tables beside ORDER-LINE have.
    pub others: Others,
}

/// Why a transaction, a load or a check ended.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The engine returned an error.
    #[error(transparent)]
    Engine(#[from] Fault),
    /// It answered with something that was never written, or not with what was.
    #[error("{0}")]
    Wrong(String),
}

impl Trouble {
    /// A row that must be there and is not.
    #[cold]
    pub(crate) fn missing(table: Table, key: &[u8]) -> Self {
        let key: String = key.iter().map(|b| format!("{b:02x}")).collect();
        Self::Wrong(format!("{}: row {key} is not there", table.name()))
    }

    /// A row that was never written so.
    #[cold]
    pub(crate) fn garbled(table: Table) -> Self {
        Self::Wrong(format!("{}: a row that was never written", table.name()))
    }
}

/// What the steps of the workload return.
pub type Done<T> = Result<T, Trouble>;

#[cfg(test)]
pub(crate) mod tests;
