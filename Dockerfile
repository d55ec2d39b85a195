# docker build -t a2a-canvas .

# A tag can become another image. --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:… is always the same one.
ARG PYTHON_IMAGE=python:3.11-slim

# The first stage installs the pinned dependencies into /venv, then the server: a change of the sources leaves the layer
# of the dependencies as it is.
FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
RUN python -m venv /venv
COPY requirements.txt ./
RUN /venv/bin/pip install --no-cache-dir --require-hashes -r requirements.txt -c requirements.txt
COPY pyproject.toml README.md LICENSE agent_card.json ./
# The package is a folder of links to the others.
COPY a2a_canvas a2a_canvas
COPY store store
COPY tools tools
COPY server server
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

# The second stage has that and nothing else: no sources, no caches, no root.
FROM ${PYTHON_IMAGE}
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin canvas && install --directory --owner=canvas /data
COPY --from=build /venv /venv
WORKDIR /app
# Two arenas, because each keeps memory of large requests that are over.
ENV MALLOC_ARENA_MAX=2
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 A2A_CANVAS_DATABASE=sqlite:////data/a2a-canvas.db
VOLUME /data
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
# The agent in /agent is served, if a folder is mounted or copied there.
CMD ["sh", "-c", "if [ -d /agent ]; then set -- /agent \"$@\"; fi; exec a2a-canvas serve --host 0.0.0.0 \"$@\"", "a2a-canvas"]
