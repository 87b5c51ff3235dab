# One image for all processes: the web server by default, worker, beat and migrations by their commands (docker-compose.yml).
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 BACKLOG_DATA_DIR=/app/var

RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin backlog
WORKDIR /app

COPY requirements.txt .
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes --requirement requirements.txt

COPY . .
# The key only lets the command start: none is written into the image.
RUN mkdir var \
    && SECRET_KEY=unused python manage.py collectstatic --no-input --verbosity 0 \
    && chown -R backlog var

USER backlog
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["python", "-m", "uvicorn", "backlog_site.asgi:application", "--host", "0.0.0.0", "--port", "8000", \
     "--no-proxy-headers", "--no-access-log", "--no-server-header", "--log-level", "warning", \
     "--lifespan", "on", "--http", "backlog_site.serving.connections:TimedConnection", "--timeout-graceful-shutdown", "20"]
