"""A client of an S3-compatible server, and its errors in words that name the way out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.errors import ConfigError, EnvironmentProblem, ForebayError, RemoteServiceError, RetryableError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_CONNECT_TIMEOUT_S = 3
_READ_TIMEOUT_S = 30
_ATTEMPTS = 2
_NO_BUCKET = {"NoSuchBucket"}
_NOT_ALLOWED = {"AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
_TRY_LATER = {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "500", "503"}


def connect(endpoint: str | None) -> S3Client:
    """Returns a client with short timeouts.

    Args:
        endpoint: URL of an S3-compatible server; None for the client's own default. With an endpoint the bucket is
            part of the path, as most such servers want.

    Raises:
        EnvironmentProblem: boto3 is not installed, the endpoint is no URL, or AWS_PROFILE names nothing.
    """
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import ProfileNotFound
    except ImportError as error:
        raise EnvironmentProblem(
            "boto3 is not installed, and the serving root is in S3",
            place="serving.root",
            hint="pip install 'forebay[s3]'",
        ) from error
    config = Config(
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        s3={"addressing_style": "path" if endpoint else "auto"},
    )
    try:
        session = boto3.session.Session()
        # Self-hosted servers have no regions, but the signature needs one.
        region = session.region_name or ("us-east-1" if endpoint else None)
        return session.client("s3", endpoint_url=endpoint, region_name=region, config=config)
    except ProfileNotFound as error:
        raise EnvironmentProblem(
            str(error), place="AWS_PROFILE", hint="Unset it, or name a profile that exists."
        ) from error
    except ValueError as error:
        raise EnvironmentProblem(
            f"{endpoint!r} is no URL of a server", place="serving.s3_endpoint", hint="Write it as http://host:port."
        ) from error


@contextlib.contextmanager
def explained(place: str, endpoint: str | None) -> Iterator[None]:
    """Turns the client's errors inside the block into Forebay's.

    Args:
        place: What was asked for, such as `s3://bucket/prefix`.
        endpoint: The server, for errors of the connection.

    Raises:
        RemoteServiceError: No such bucket, not allowed, nobody answers, or an error of another kind.
        RetryableError: The server is overloaded or had a failure of its own.
        EnvironmentProblem: There are no credentials.
        ConfigError: The bucket's name cannot be one.
    """
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

    try:
        yield
    except NoCredentialsError as error:
        raise EnvironmentProblem(
            "no S3 credentials", place=place, hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        ) from error
    except ParamValidationError as error:
        raise ConfigError(f"the S3 client refuses this: {error}", place=place, hint="Change serving.root.") from error
    except ClientError as error:
        details = error.response.get("Error", {})
        raise _refused(details.get("Code", ""), details.get("Message", ""), place) from error
    except (BotoCoreError, Boto3Error) as error:
        if isinstance(error.__cause__ or error.__context__, ClientError):
            response = (error.__cause__ or error.__context__).response["Error"]  # type: ignore[union-attr]
            raise _refused(response.get("Code", ""), response.get("Message", ""), place) from error
        raise RemoteServiceError(
            f"no answer from {endpoint or 'the S3 server'}: {error}",
            place=place,
            hint="Check serving.s3_endpoint and the network.",
        ) from error


def is_missing(code: str) -> bool:
    """Returns whether an error code says that an object is not there."""
    return code in ("NoSuchKey", "404", "NotFound")


def lost_race(code: str) -> bool:
    """Returns whether an error code says that somebody else has written the object first."""
    return code in ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")


def _refused(code: str, message: str, place: str) -> ForebayError:
    if code in _NO_BUCKET:
        return RemoteServiceError("no such bucket", place=place, hint="Make the bucket, or change serving.root.")
    if code in _NOT_ALLOWED:
        return RemoteServiceError(
            f"the S3 server did not allow it ({code})",
            place=place,
            hint="Check the credentials and the bucket's policy: listing, reading, writing and deleting are needed.",
        )
    text = f"the S3 server answered {code}: {message}"
    if code in _TRY_LATER:
        return RetryableError(text, place=place, hint="Push again later.")
    return RemoteServiceError(text, place=place)
