"""Signing in on the page with OpenID Connect, signing out, and addresses that are signed for a minute.

It makes the credentials that `identity` checks.
"""
