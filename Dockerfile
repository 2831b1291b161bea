# Two images: `operator` (the control plane) and `runtime` (vLLM with our plugin, what the pods run).
#
#   docker build --target operator -t dsd-operator:0.1.0 .
#   docker build --target runtime  -t dsd-runtime:0.1.0 .
#
# Both bases can be named: `--build-arg PYTHON_IMAGE=…`, `--build-arg VLLM_IMAGE=…`. Dependencies lie in early layers,
# our wheels in the last one, so that a change of our code rebuilds in seconds. Behind a proxy with a certificate
# authority of its own, mount its bundle and pass `--build-arg PIP_CERT=PATH`; a mirror goes into PIP_INDEX_URL.
# Where the image comes from goes into its labels: REVISION, CREATED, SOURCE (docs/development/releasing.md).
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG VLLM_IMAGE=vllm/vllm-openai:v0.32.0

# --- our wheels: a stage each, so that a change of one leaves the other's image alone ----------------------------------
FROM ${PYTHON_IMAGE} AS build
ARG PIP_CERT
ARG PIP_INDEX_URL
WORKDIR /src
COPY requirements/build.txt requirements/
RUN python3 -m venv /build \
 && /build/bin/pip install -q --no-cache-dir --no-deps --require-hashes -r requirements/build.txt
ENV PIP_NO_INDEX=1 PIP_NO_DEPS=1 PIP_NO_CACHE_DIR=1
COPY LICENSE README.md ./

FROM build AS runtime-wheel
COPY runtime runtime
RUN /build/bin/pip wheel -q --no-build-isolation --wheel-dir /wheels ./runtime

FROM build AS operator-code
COPY pyproject.toml ./
COPY operator operator
COPY --from=runtime-wheel /wheels /wheels
RUN /build/bin/pip wheel -q --no-build-isolation --wheel-dir /wheels . \
 && /build/bin/pip install -q --target /code /wheels/*.whl \
 && rm -r /code/bin

# --- the operator: no pip, nothing writable ---------------------------------------------------------------------------
FROM ${PYTHON_IMAGE} AS operator
ARG PIP_CERT
ARG PIP_INDEX_URL
COPY requirements/operator.txt /opt/dsd/requirements.txt
RUN python3 -m venv /tmp/pip \
 && python3 -m venv --without-pip /opt/dsd \
 && /tmp/pip/bin/pip --python /opt/dsd/bin/python install -q --no-cache-dir --no-deps --require-hashes -r /opt/dsd/requirements.txt \
 && rm -r /tmp/pip
ENV PATH=/opt/dsd/bin:$PATH PYTHONPATH=/opt/dsd/code PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
EXPOSE 8080 8081
ENTRYPOINT ["python3", "-m", "dsd_operator"]
COPY LICENSE THIRD-PARTY.md /licenses/
USER 65532:65532
COPY --from=operator-code /code /opt/dsd/code
# Last, for each commit has another revision. These arguments are no part of any layer.
ARG PYTHON_IMAGE
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=https://dsd-operator.io
LABEL org.opencontainers.image.title="dsd-operator" \
      org.opencontainers.image.description="Kubernetes operator for vLLM's dynamic speculative decoding" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}"

# --- vLLM with our plugin ---------------------------------------------------------------------------------------------
FROM ${VLLM_IMAGE} AS runtime
ARG PIP_CERT
ARG PIP_INDEX_URL
ARG PIP_BREAK_SYSTEM_PACKAGES=1
USER 0
# Nothing that vLLM brought may change: the lock fills in only what the image lacks.
COPY requirements/runtime.txt /opt/dsd/requirements.txt
RUN python3 -c "import cryptography, jwt" \
 || python3 -m pip install -q --no-cache-dir --no-deps --require-hashes -r /opt/dsd/requirements.txt
ENV PYTHONUNBUFFERED=1
EXPOSE 8000
ENTRYPOINT ["dsd-serve"]
COPY LICENSE THIRD-PARTY.md /licenses/
COPY --from=runtime-wheel /wheels /opt/dsd/wheels
# With dependencies and without an index: pip accepts what is there and fails the build where something does not fit.
RUN python3 -m pip install -q --no-cache-dir --no-index /opt/dsd/wheels/dsd_runtime-*.whl
USER 65532:65532
# Last, for each commit has another revision. These arguments are no part of any layer.
ARG VLLM_IMAGE
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=https://dsd-operator.io
LABEL org.opencontainers.image.title="dsd-runtime" \
      org.opencontainers.image.description="vLLM with schedules of speculative tokens that change in place" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${VLLM_IMAGE}"
