"""Every kind of channel by its public name. The contract they fulfil is `stepwell.graph.channel`."""

from stepwell.graph.channel import Channel
from stepwell.graph.channels.collected import NamedBarrierValue, Topic
from stepwell.graph.channels.delta import DeltaChannel
from stepwell.graph.channels.reduced import BinaryOperatorAggregate
from stepwell.graph.channels.values import AnyValue, EphemeralValue, LastValue, LastValueAfterFinish, UntrackedValue

__all__ = (
    "AnyValue",
    "BinaryOperatorAggregate",
    "Channel",
    "DeltaChannel",
    "EphemeralValue",
    "LastValue",
    "LastValueAfterFinish",
    "NamedBarrierValue",
    "Topic",
    "UntrackedValue",
)
