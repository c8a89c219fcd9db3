"""Makes the certificate authority and server certificates, and says when to make them anew.

Pure but for the random keys: the time is an argument, PEM bytes come out, nothing is read or
written. The authority's key is handed out once and is meant to be forgotten after its leaves are
signed: renewal makes a new authority and trusts both for a while, so that no key that can sign
lies about in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=3650)
# Nothing renews a certificate yet: an operator has to replace it within the year.
LEAF_LIFETIME = timedelta(days=365)
# kube-scheduler reads its certificate once, when it starts: a short life would only stop it.
CLIENT_LIFETIME = timedelta(days=365)
# The clocks of the API server and of the issuer may differ by some minutes; an hour is on the safe
# side and costs nothing.
BACKDATED = timedelta(hours=1)

Address = IPv4Address | IPv6Address


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


def service_names(service: str, namespace: str) -> ServerNames:
    """Return the DNS names of a Service; the API server calls it as NAME.NAMESPACE.svc."""
    short = f"{service}.{namespace}"
    return ServerNames(dns=(f"{short}.svc", f"{short}.svc.cluster.local", short, service))


def new_authority(name: str, now: datetime) -> Pair:
    """Make an authority that can sign server certificates, but no further authorities."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(name)
    builder = (
        _builder(subject, subject, now, CA_LIFETIME, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage_of_an_authority(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Pair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key))


def issue_leaf(authority: Pair, names: ServerNames, now: datetime) -> Pair:
    """Make a server certificate for these names, signed by the authority."""
    alternative = x509.SubjectAlternativeName(_alternative_names(names))
    usage = ExtendedKeyUsageOID.SERVER_AUTH
    return _signed(authority, _named("muster"), now, now + LEAF_LIFETIME, usage, alternative)


def issue_client(authority: Pair, name: str, now: datetime) -> Pair:
    """Make a client certificate with this common name, signed by the authority."""
    try:
        subject = _named(name)
    except ValueError as error:
        raise CertificateError(f"a name that no certificate can hold: {error}") from error
    usage = ExtendedKeyUsageOID.CLIENT_AUTH
    return _signed(authority, subject, now, now + CLIENT_LIFETIME, usage)


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
    builder = (
        _builder(subject, issuer.subject, now, until - now, key.public_key())
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


def expires_at(certificate: bytes) -> datetime:
    """Return the moment after which the certificate is refused."""
    return load_certificate(certificate).not_valid_after_utc


def needs_renewal(certificate: bytes, now: datetime) -> bool:
    """Tell whether two thirds of the certificate's life are over (or it is not valid yet)."""
    loaded = load_certificate(certificate)
    begin, end = loaded.not_valid_before_utc, loaded.not_valid_after_utc
    return now < begin or now >= begin + (end - begin) * 2 / 3


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
    lifetime: timedelta,
    key: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + lifetime)
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


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        # The library's text may quote what it read: not for a log.
        raise CertificateError("not a readable PEM key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"the key is {type(key).__name__}, an elliptic curve key is needed")
    return key


def _public_bytes(key: object) -> bytes:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise CertificateError(f"the key is {type(key).__name__}, an elliptic curve key is needed")
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
