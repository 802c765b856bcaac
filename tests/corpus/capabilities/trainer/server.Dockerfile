FROM python:3.11-slim-bookworm
ENV ROLE=server
COPY train.py /train.py
ENTRYPOINT ["python", "-u", "/train.py"]
