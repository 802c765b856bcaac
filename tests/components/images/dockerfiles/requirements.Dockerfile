FROM python:3.11-slim-bookworm
# Made by root, for whatever user the container runs as.
RUN mkdir -m 777 -p /usr/app /home
WORKDIR /usr/app
ENV HOME=/home
ENV PYTHONDONTWRITEBYTECODE=1
RUN pip install --no-cache-dir --upgrade 'pandas>=2,<3'
RUN pip install --no-cache-dir --upgrade 'rich[jupyter]'
COPY ["package", "."]
ENTRYPOINT ["python", "train.py"]
