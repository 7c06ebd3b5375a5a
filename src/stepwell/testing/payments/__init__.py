"""A payment server that counts, to find out whether your code pays twice: a real HTTP server in a process of its own.

Start a `PaymentServer`, let the code under test charge through `Payments(account.url)`, kill that code where you like,
run it again, and read `account.report()`. Faults are scripted: a request is refused, held until you say, charged and
never answered. The standard library is all it needs.
"""

from stepwell.testing.payments.account import Account, Fault, Report, Request
from stepwell.testing.payments.client import Charge, KeyReusedError, PaymentRefusedError, Payments
from stepwell.testing.payments.process import PaymentServer

__all__ = [
    "Account",
    "Charge",
    "Fault",
    "KeyReusedError",
    "PaymentRefusedError",
    "PaymentServer",
    "Payments",
    "Report",
    "Request",
]
