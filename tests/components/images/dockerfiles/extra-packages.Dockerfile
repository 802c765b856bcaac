FROM python:3.11-slim-bookworm
# Made by root, for whatever user the container runs as.
RUN mkdir -m 777 -p /usr/app /home
WORKDIR /usr/app
ENV HOME=/home
ENV PYTHONDONTWRITEBYTECODE=1
COPY ["package/dep/foo-1.tar.gz", "foo-1.tar.gz"]
RUN pip install --no-cache-dir foo-1.tar.gz
COPY ["package/bar 2.whl", "bar 2.whl"]
RUN pip install --no-cache-dir 'bar 2.whl'
COPY ["package", "."]
ENTRYPOINT ["python", "train.py"]
