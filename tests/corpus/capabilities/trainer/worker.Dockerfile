FROM python:3.11-slim-bookworm
ENV ROLE=worker
RUN printf '[GoogleCompute]\nservice_account = default\n' > /etc/boto.cfg
COPY train.py /train.py
ENTRYPOINT ["python", "-u", "/train.py"]
