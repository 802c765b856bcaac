"""The right to use a customer-managed key, which the agent of each encrypting service needs before it can."""

import pulumi
from pulumi_gcp import kms

from .propagation import until_known

KEY_USER = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


def key_grant(name: str, key: str, member: str, options: pulumi.ResourceOptions) -> kms.CryptoKeyIAMMember:
    """Lets a service agent encrypt and decrypt with a key."""
    known = pulumi.ResourceOptions(hooks=until_known())
    return kms.CryptoKeyIAMMember(
        name,
        crypto_key_id=key,
        role=KEY_USER,
        member=member,
        opts=pulumi.ResourceOptions.merge(options, known),
    )
