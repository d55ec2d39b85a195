"""Agents of frameworks as the loop: one module for each framework, which alone imports it.

Owns what an adapter needs besides `Turn`: our tools in a form that frameworks take, and the message history of an
agent. It has no tables.
"""
