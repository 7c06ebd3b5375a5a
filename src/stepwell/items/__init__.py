"""The item store: values under a namespace and a key, beside the threads and for all of them.

Here: the operations as values (`ops`), what a name and a filter may be (`names`, `filters`), the public contract
(`contract`), what every store of Stepwell's does with operations (`table`), and the view of it that a running node gets
(`view`). Not here: SQL, which is the store's, and when a node's writes are applied, which is the runtime's.
"""

from stepwell.items.contract import BaseStore
from stepwell.items.ops import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)
from stepwell.items.table import ItemTable
from stepwell.items.view import TaskItems

__all__ = [
    "BaseStore",
    "GetOp",
    "Item",
    "ItemTable",
    "ListNamespacesOp",
    "MatchCondition",
    "Op",
    "PutOp",
    "Result",
    "SearchItem",
    "SearchOp",
    "TTLConfig",
    "TaskItems",
]
