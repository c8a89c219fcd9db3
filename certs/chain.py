"""Makes the certificate authority and server certificates, and says when to make them anew.

Pure but for the random keys: the time is an argument, PEM bytes come out, nothing is read or
written. It also judges chains that others made, with intermediates or RSA keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=3650)
# Renewed at a third of it left: 30 days in which a program that is down can be put right.
LEAF_LIFETIME = timedelta(days=90)
# Copies of it lie on the hosts of kube-scheduler, where nothing renews them: as its authority.
CLIENT_LIFETIME = CA_LIFETIME
# The clocks of the API server and of the issuer may differ by some minutes; an hour is on the safe
# side and costs nothing.
BACKDATED = timedelta(hours=1)

Address = IPv4Address | IPv6Address
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class CertificateError(ValueError):
    """A certificate, key or name that cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM. The key never shows in a repr."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServerNames:
    """The names and addresses under which a server is called."""

    dns: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()

    def __post_init__(self) -> None:
        if not self.dns and not self.addresses:
            raise CertificateError("a server certificate needs at least one DNS name or address")

    def __str__(self) -> str:
        return ", ".join((*self.dns, *map(str, self.addresses)))


def service_names(service: str, namespace: str) -> ServerNames:
    """Return the DNS names of a Service; the API server calls it as NAME.NAMESPACE.svc."""
    short = f"{service}.{namespace}"
    return ServerNames(dns=(f"{short}.svc", f"{short}.svc.cluster.local", short, service))


def new_authority(name: str, now: datetime, lifetime: timedelta = CA_LIFETIME) -> Pair:
    """Make an authority that can sign server certificates, but no further authorities."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(name)
    builder = (
        _builder(subject, subject, now, now + lifetime, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage_of_an_authority(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key))


def issue_leaf(
    authority: Pair, names: ServerNames, now: datetime, lifetime: timedelta = LEAF_LIFETIME
) -> Pair:
    """Make a server certificate for these names, signed by the authority; it ends first."""
    alternative = x509.SubjectAlternativeName(_alternative_names(names))
    usage = ExtendedKeyUsageOID.SERVER_AUTH
    return _signed(authority, _named("muster"), now, now + lifetime, usage, alternative)


def issue_client(
    authority: Pair, name: str, now: datetime, lifetime: timedelta = CLIENT_LIFETIME
) -> Pair:
    """Make a client certificate with this common name, signed by the authority; it ends first."""
    try:
        subject = _named(name)
    except ValueError as error:
        raise CertificateError(f"a name that no certificate can hold: {error}") from error
    usage = ExtendedKeyUsageOID.CLIENT_AUTH
    return _signed(authority, subject, now, now + lifetime, usage)


def _signed(
    authority: Pair,
    subject: x509.Name,
    now: datetime,
    until: datetime,
    usage: x509.ObjectIdentifier,
    *extensions: x509.ExtensionType,
) -> Pair:
    issuer = load_certificate(authority.certificate)
    signer = _load_key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(until, issuer.not_valid_after_utc)
    builder = (
        _builder(subject, issuer.subject, now, end, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage_of_a_leaf(), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return Pair(_pem(builder.sign(signer, hashes.SHA256())), _key_pem(key))


def load_certificate(pem: bytes) -> x509.Certificate:
    """Read the first certificate of a PEM text."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"not a PEM certificate: {error}") from error


def certificates_in(pem: bytes) -> tuple[bytes, ...]:
    """Return each certificate of a PEM text as a text of its own, as this module writes them."""
    try:
        return tuple(map(_pem, x509.load_pem_x509_certificates(pem)))
    except ValueError as error:
        raise CertificateError(f"not PEM certificates: {error}") from error


def starts_at(certificate: bytes) -> datetime:
    """Return the moment before which the certificate is refused."""
    return load_certificate(certificate).not_valid_before_utc


def expires_at(certificate: bytes) -> datetime:
    """Return the moment after which the certificate is refused."""
    return load_certificate(certificate).not_valid_after_utc


def renewal_at(certificate: bytes) -> datetime:
    """Return when two thirds of the certificate's life are over."""
    begin = starts_at(certificate)
    return begin + (expires_at(certificate) - begin) * 2 / 3


def needs_renewal(certificate: bytes, now: datetime) -> bool:
    """Tell whether two thirds of the certificate's life are over (or it is not valid yet)."""
    return now < starts_at(certificate) or now >= renewal_at(certificate)


def serves(certificate: bytes, names: ServerNames) -> bool:
    """Tell whether the certificate holds all of these names."""
    held = _held_names(load_certificate(certificate))
    return held.issuperset([*names.dns, *names.addresses])


def is_named(certificate: bytes, name: str) -> bool:
    """Tell whether the certificate bears this common name."""
    held = load_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return [attribute.value for attribute in held] == [name]


def belong_together(pair: Pair) -> bool:
    """Tell whether the key is the certificate's."""
    public = load_certificate(pair.certificate).public_key()
    return _public_bytes(public) == _public_bytes(_load_key(pair.key).public_key())


def can_sign(authority: Pair) -> bool:
    """Tell whether this is an authority and its key."""
    loaded = load_certificate(authority.certificate)
    try:
        basic = loaded.extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    return basic.value.ca and belong_together(authority)


def anchor(chain: bytes, authorities: Iterable[bytes]) -> bytes | None:
    """Return which of the authorities a certificate goes back to, by way of its intermediates."""
    links = certificates_in(chain)
    if not all(signed_by(link, issuer) for link, issuer in pairwise(links)):
        return None
    return next((each for each in authorities if signed_by(links[-1], each)), None)


def signed_by(certificate: bytes, authority: bytes) -> bool:
    """Tell whether the authority signed the certificate."""
    try:
        load_certificate(certificate).verify_directly_issued_by(load_certificate(authority))
    except CertificateError:
        raise
    except Exception:  # noqa: BLE001 - the library raises a different type for each way to differ
        return False
    return True


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    now: datetime,
    until: datetime,
    key: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(until)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative_names(names: ServerNames) -> Iterable[x509.GeneralName]:
    try:
        yield from (x509.DNSName(name) for name in names.dns)
    except ValueError as error:
        raise CertificateError(f"a DNS name that no certificate can hold: {error}") from error
    yield from (x509.IPAddress(address) for address in names.addresses)


def _held_names(certificate: x509.Certificate) -> set[str | Address]:
    try:
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = (address for address in held.get_values_for_type(x509.IPAddress))
    single = (item for item in addresses if isinstance(item, IPv4Address | IPv6Address))
    return {*held.get_values_for_type(x509.DNSName), *single}


def _usage_of_an_authority() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _usage_of_a_leaf() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _load_key(pem: bytes) -> Key:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        # The library's text may quote what it read: not for a log.
        raise CertificateError("not a readable PEM key") from error
    if not isinstance(key, Key):
        raise CertificateError(f"the key is {type(key).__name__}; allowed: elliptic curve or RSA")
    return key


def _public_bytes(key: object) -> bytes:
    if not isinstance(key, PublicKey):
        raise CertificateError(f"the key is {type(key).__name__}; allowed: elliptic curve or RSA")
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
