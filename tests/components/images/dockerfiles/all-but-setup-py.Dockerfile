FROM python:3.11-slim-bookworm
# Made by root, for whatever user the container runs as.
RUN mkdir -m 777 -p /usr/app /home
WORKDIR /usr/app
ENV HOME=/home
ENV PYTHONDONTWRITEBYTECODE=1
COPY ["package/requirements.txt", "requirements.txt"]
RUN pip install --no-cache-dir -r ./requirements.txt
COPY ["package/a.whl", "a.whl"]
RUN pip install --no-cache-dir a.whl
RUN pip install --no-cache-dir --upgrade rich
COPY ["package/data", "data"]
COPY ["package/src", "src"]
ENTRYPOINT ["python", "src/train.py"]
