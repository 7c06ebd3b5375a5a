"""What can be wrong with encryption: a key that is missing or another one, and rows that are not what was written."""

from __future__ import annotations

from stepwell.errors.root import UsageError
from stepwell.errors.storage import CorruptRecordError, StoreError


class InvalidKeyError(UsageError):
    """{reason}. A key is 32 random bytes, as Encryption.new_key() makes them, under an id that is text."""

    code = "invalid_key"


class EncryptionError(StoreError):
    """What is stored cannot be read or written with the keys that were given."""

    code = "encryption_error"


class MissingKeyError(EncryptionError):
    """The data key of {owner} is wrapped by key {key_id!r}, which was not given. Give it to Encryption(...) beside the
    others."""

    code = "missing_key"


class WrongKeyError(EncryptionError):
    """Key {key_id!r} does not open the data key of {owner}: it is another key than the one that wrapped it, or the row
    was altered or belongs to another thread. Give the right one under this id, or restore the row from a backup."""

    code = "wrong_key"


class KeyServiceError(EncryptionError):
    """The key service failed on the data key of {owner}: {reason}. Nothing was written. Try again when it answers."""

    code = "key_service_failed"


class DatabaseEncryptedError(EncryptionError):
    """This database is encrypted, and no key was given. Pass encryption=Encryption(...) to the saver; on the command
    line set STEPWELL_KEY or --key-file. Without a key it can be verified, its threads listed and deleted."""

    code = "database_encrypted"


class PlaintextDatabaseError(EncryptionError):
    """This database holds what is not encrypted. Open it without encryption=, or with
    Encryption(..., accept_plaintext=True) to read that and to encrypt what is written from now on."""

    code = "plaintext_database"


class EncryptedThreadFileError(EncryptionError):
    """{path} holds an encrypted thread, and this database is not encrypted: what thread {thread_id} says could not be
    read here. Nothing was imported. Import it into a database that has the key its data key is wrapped by."""

    code = "encrypted_thread_file"


class PlaintextThreadFileError(EncryptionError):
    """{path} holds what is not encrypted (a row of {table}), and this database is: nothing of thread {thread_id} was
    imported. Import it into a database of its own, open that with Encryption(..., accept_plaintext=True), and export a
    copy: saver.copy_thread(...) encrypts what it copies."""

    code = "plaintext_thread_file"


class KeyTakenError(EncryptionError):
    """Another writer was faster to give thread {thread_id} its data key. Nothing was written. Try again."""

    code = "key_taken"


class PlaintextRecordError(CorruptRecordError):
    """{record} is not encrypted, and this database is. Whoever can write to the database may have put it there; if it
    is from before the encryption, open it with Encryption(..., accept_plaintext=True)."""

    code = "plaintext_record"


class TamperedRecordError(CorruptRecordError):
    """{record} does not authenticate: {reason}. It was altered, moved from another place or written under another key.
    Restore it from a backup, or fork from an older checkpoint."""

    code = "tampered_record"


class LostKeyError(CorruptRecordError):
    """{record} is encrypted, and its thread's data key is missing: it was deleted with the thread, or by accident.
    Restore the row of the table `keys` from a backup; without it nothing of the thread can be read."""

    code = "lost_key"
