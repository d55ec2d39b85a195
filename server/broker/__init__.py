"""The connection to a broker (NATS), by which the servers of one database wake each other.

Rule 1: a message may be lost, come late, come twice, or be forged. Nothing is right because of a message: the database
        is read when none comes.
Rule 2: a subject is made of keyed hashes, so no name that a client has chosen is part of it, and nobody without the key
        can tell what it is about. A message is signed with the same key, for its subject.
Rule 3: nothing waits for the broker. What it does not take in time is dropped and counted.
"""
