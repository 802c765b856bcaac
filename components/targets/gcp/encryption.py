"""Grants to use a customer-managed encryption key, which the agent of each encrypting service needs."""

import pulumi
from pulumi_gcp import kms

from .propagation import create_retry_hook

KEY_USER = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


def grant_key_use(name: str, key: str, member: str, options: pulumi.ResourceOptions) -> kms.CryptoKeyIAMMember:
    """Grant a service agent the right to encrypt and decrypt with a key."""
    retry = pulumi.ResourceOptions(hooks=create_retry_hook())
    return kms.CryptoKeyIAMMember(
        name,
        crypto_key_id=key,
        role=KEY_USER,
        member=member,
        opts=pulumi.ResourceOptions.merge(options, retry),
    )
