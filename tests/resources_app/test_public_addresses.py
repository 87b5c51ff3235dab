"""Test which addresses an outgoing request may connect to."""

import pytest

from resources_app.safety.public_addresses import is_public


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "2a00:1450:4001:82a::200e"]
)
def test_a_unicast_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.0.0.5",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
        ),
        *(
            "224.0.0.1",
            "239.255.255.250",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "192.88.99.1",
        ),
        *(
            "::",
            "::1",
            "fe80::1",
            "fe80::1%eth0",
            "fc00::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
            "2001:db8::1",
        ),
        *(
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::7f00:1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
        ),
        *(
            "2002:7f00:1::",
            "2002:808:808::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "100::1",
            "nonsense",
            "",
        ),
    ],
)
def test_everything_else_is_not(address: str) -> None:
    assert not is_public(address)
