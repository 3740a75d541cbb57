//! How large the database is.

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

    /// Rows of the loaded database and the entries of its two secondary indexes; order lines by
    /// their mean.
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
        // A customer of 560, its name's entry, a history row, an order with its index and ten
        // lines.
        const CUSTOMER_BYTES: u64 = 560 + 45 + 60 + 50 + 520;
        let stock = u64::from(self.warehouses) * u64::from(self.items) * STOCK_BYTES;
        let districts = u64::from(self.warehouses) * u64::from(DISTRICTS);
        let customers = districts * u64::from(self.customers) * CUSTOMER_BYTES;
        stock + customers + u64::from(self.items) * ITEM_BYTES
    }
}
