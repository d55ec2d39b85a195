"""Signing in on the page: OpenID Connect, the session of a browser, and addresses that are signed for a minute.

It makes the credentials that `identity` checks.
Owns no table.
"""
