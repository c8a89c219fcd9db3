ARG BASE_IMAGE=python:3.13-slim

FROM ${BASE_IMAGE} AS build
WORKDIR /src
COPY requirements/build.txt requirements/runtime.txt requirements/
RUN python -m venv /opt/build
RUN /opt/build/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: \
        --requirement requirements/build.txt
RUN python -m venv --without-pip /opt/muster
RUN /opt/build/bin/python -m pip --python /opt/muster/bin/python install --no-cache-dir \
        --require-hashes --only-binary :all: --requirement requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY scheduling scheduling
COPY runtime runtime
COPY kube kube
COPY reservation reservation
COPY appwrapper appwrapper
COPY headstate headstate
COPY dispatcher dispatcher
COPY forecast forecast
COPY forecaster forecaster
COPY webhook webhook
COPY coordinator coordinator
COPY extender extender
COPY certs certs
COPY wrapper wrapper
COPY cli cli
RUN /opt/build/bin/python -m hatchling build -t wheel -d /dist
RUN /opt/build/bin/python -m pip --python /opt/muster/bin/python install --no-cache-dir \
        --no-index --no-deps --find-links /dist muster

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="Muster" \
      org.opencontainers.image.description="Gang admission for Ray on Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/muster/bin:${PATH} \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=build /opt/muster /opt/muster
WORKDIR /
USER 65532:65532
ENTRYPOINT ["python", "-m"]
CMD ["coordinator"]
