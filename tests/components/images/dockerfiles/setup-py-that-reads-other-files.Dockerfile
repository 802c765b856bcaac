FROM python:3.11-slim-bookworm
# Made by root, for whatever user the container runs as.
RUN mkdir -m 777 -p /usr/app /home
WORKDIR /usr/app
ENV HOME=/home
ENV PYTHONDONTWRITEBYTECODE=1
COPY ["package/setup.py", "setup.py"]
COPY ["package/setup.cfg", "setup.cfg"]
COPY ["package/README.md", "README.md"]
COPY ["package/requirements.txt", "requirements.txt"]
COPY ["package/common", "common"]
COPY ["package/trainer", "trainer"]
RUN pip install --no-cache-dir .
COPY ["package/requirements.txt", "requirements.txt"]
RUN pip install --no-cache-dir -r ./requirements.txt
ENTRYPOINT ["python", "-m", "trainer.task"]
