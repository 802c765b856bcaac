FROM us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest
# Made by root, for whatever user the container runs as.
RUN mkdir -m 777 -p /usr/app /home
WORKDIR /usr/app
ENV HOME=/home
ENV PYTHONDONTWRITEBYTECODE=1
RUN rm -rf /var/sitecustomize
COPY ["package/requirements.txt", "requirements.txt"]
RUN pip3 install --no-cache-dir -r ./requirements.txt
COPY ["package/a.whl", "a.whl"]
RUN pip3 install --no-cache-dir a.whl
RUN pip3 install --no-cache-dir --upgrade rich
COPY ["package/trainer", "trainer"]
ENTRYPOINT ["python3", "-m", "trainer.task"]
