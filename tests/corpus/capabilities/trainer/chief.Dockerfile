FROM python:3.11-slim-bookworm
ENV ROLE=chief
COPY train.py /train.py
ENTRYPOINT ["python", "-u", "/train.py"]
