"""Signing in on the page with OpenID Connect, signing out, and signed addresses that are valid for a minute.

It issues the credentials of browsers; `identity` checks them.
"""
