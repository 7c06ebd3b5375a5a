"""Values to bytes and back, exactly: the closed registry of types, the codec, canonical bytes.

Importing this package imports neither ormsgpack nor any library whose values it can write; making a `Codec` imports
ormsgpack.
"""

from stepwell.codec.canonical import canonical
from stepwell.codec.codec import Codec, is_scalar
from stepwell.codec.lists import joined
from stepwell.codec.registry import Registry, register_type, type_name

__all__ = ["Codec", "Registry", "canonical", "is_scalar", "joined", "register_type", "type_name"]
