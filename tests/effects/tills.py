"""How a node pays: plainly, or through an effect by each of its policies. Each way to pay, for sync and async nodes."""

from pathlib import Path
from typing import Any

from stepwell import Doubt, EffectNotPerformed, effect, points
from stepwell.testing.payments import Charge, Payments

AMOUNT = 5

CALLING, ANSWERED = "calling", "answered"
"""The moments of a call that only the code which makes it can name: crash points of these tests' own."""


class Till:
    """Pays plainly, without any record that it has."""

    def __init__(self, client: Payments, folder: str) -> None:
        self.client = client
        self._doubts = Path(folder) / "doubts.txt"

    def pay(self, reference: str) -> Charge:
        return self.charge(reference)

    async def apay(self, reference: str) -> Charge:
        return await self.acharge(reference)

    def charge(self, reference: str, key: str | None = None) -> Charge:
        points.reach(CALLING)
        charge = self.client.charge(AMOUNT, reference=reference, idempotency_key=key)
        points.reach(ANSWERED)
        return charge

    async def acharge(self, reference: str, key: str | None = None) -> Charge:
        points.reach(CALLING)
        charge = await self.client.acharge(AMOUNT, reference=reference, idempotency_key=key)
        points.reach(ANSWERED)
        return charge

    def note_doubt(self, key: str) -> None:
        """Remember, beyond this process, that somebody was told of a doubt."""
        with self._doubts.open("a") as file:
            file.write(key + "\n")

    def doubts(self) -> list[str]:
        """Return the keys of all that was in doubt, as often as somebody was told of it."""
        return self._doubts.read_text().split() if self._doubts.exists() else []


class EffectTill(Till):
    """Pays through an effect. "retry" passes its key on; "raise" and "ask" have none; "ask" looks into the books."""

    def __init__(self, client: Payments, folder: str, policy: str = "retry", **options: Any) -> None:
        super().__init__(client, folder)

        def keyed(reference: str, idempotency_key: str = "") -> Charge:
            return self.charge(reference, idempotency_key)

        async def akeyed(reference: str, idempotency_key: str = "") -> Charge:
            return await self.acharge(reference, idempotency_key)

        def keyless(reference: str) -> Charge:
            return self.charge(reference)

        async def akeyless(reference: str) -> Charge:
            return await self.acharge(reference)

        by_key = policy == "retry"
        declare = effect(name="pay", on_doubt=self.look_up if policy == "ask" else policy, **options)
        self._pay: Any = declare(keyed if by_key else keyless)
        self._apay: Any = declare(akeyed if by_key else akeyless)

    def pay(self, reference: str) -> Charge:
        charge: Charge = self._pay(reference)
        return charge

    async def apay(self, reference: str) -> Charge:
        charge: Charge = await self._apay(reference)
        return charge

    def look_up(self, doubt: Doubt) -> Charge:
        """Say whether it was charged, as far as the server knows: it answers when all that came before is over."""
        self.note_doubt(doubt.key)
        found = self.client.find(reference=doubt.args[0])
        if not found:
            raise EffectNotPerformed(f"nothing was charged for {doubt.args[0]}")
        return found[0]
