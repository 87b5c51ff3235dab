"""Decide whether a network address is public.

Every outgoing request checks this before it connects.
"""

import ipaddress

# Addresses that embed another one: a name that resolves to them could lead to a private IPv4
# address.
_TRANSITION = tuple(
    ipaddress.ip_network(network)
    for network in (
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",  # NAT64, local use
        "2002::/16",  # 6to4
        "192.88.99.0/24",  # 6to4 relays
        "2001::/32",  # Teredo
        "::ffff:0:0/96",  # IPv4-mapped
        "::/96",  # IPv4-compatible
        "5f00::/16",  # segment routing
    )
)


def is_public(address: str) -> bool:
    """Return True only for a unicast address of the public internet."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if not ip.is_global or ip.is_multicast or ip.is_reserved or getattr(ip, "is_site_local", False):
        return False
    return not any(ip in network for network in _TRANSITION)
