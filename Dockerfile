# docker build -t a2a-canvas .

# The first stage installs the server and its pinned dependencies into /venv.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE agent_card.json ./
COPY store store
COPY tools tools
COPY server server
RUN python -m venv /venv
RUN /venv/bin/pip install --no-cache-dir -c constraints.txt .

# The second stage has that and nothing else: no sources, no caches, no root.
FROM python:3.11-slim
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
CMD ["a2a-canvas", "serve", "--host", "0.0.0.0"]
