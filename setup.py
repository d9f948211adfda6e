"""Package metadata of Forebay. The version stands here and nowhere else; code asks importlib.metadata for it."""

from __future__ import annotations

from pathlib import Path

from setuptools import find_namespace_packages, find_packages, setup

_ROOT = Path(__file__).resolve().parent


def _requirements(name: str) -> list[str]:
    """Returns the requirement lines of requirements/<name>.in, so that each pin is written once."""
    lines = (_ROOT / "requirements" / f"{name}.in").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


setup(
    name="forebay",
    version="0.1.0",
    description="TFX pipelines from raw data to a gated, optimized, versioned and served TensorFlow model",
    long_description=(_ROOT / "README.md").read_text(encoding="utf-8") if (_ROOT / "README.md").is_file() else "",
    long_description_content_type="text/markdown",
    # TFX 1.16 publishes wheels for 3.9 and 3.10 only; 3.10 is the one that we lock and test.
    python_requires=">=3.10,<3.11",
    # Spelled out, it makes an editable install put this folder on sys.path. Without it setuptools installs an import
    # hook that runs after sys.path, and any bare folder named like one of our packages would win over it.
    package_dir={"": "."},
    packages=[
        *find_packages(include=["core*", "components*", "pipeline*", "serving*"]),
        # Folders of files without code: they lie beside the packages, installed or not, so paths are the same.
        *find_namespace_packages(include=["configs*", "data*"]),
    ],
    package_data={"": ["*.yaml", "*.pbtxt", "*.html", "*.css"]},
    install_requires=_requirements("base"),
    extras_require={name: _requirements(name) for name in ("kfp", "gpu", "s3", "pretrained", "dev")},
    entry_points={"console_scripts": ["forebay = pipeline.cli.main:main"]},
    classifiers=[
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.10",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
