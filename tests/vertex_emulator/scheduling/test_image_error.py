from tests.vertex_emulator.jobs import LOCATION
from vertex_emulator.scheduling.image_error import render_image_error


def test_artifact_registry_images_get_the_service_s_message() -> None:
    image = "europe-west4-docker.pkg.dev/other-project/trainers/digits:1"
    found = render_image_error(image, f"{image} cannot be pulled: denied", LOCATION)
    assert found == (
        f"Vertex AI Service Agent service-{LOCATION.project_number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com does "
        "not have permission to access Artifact Registry repository "
        "projects/other-project/locations/europe-west4/repositories/trainers. "
        f"On this machine: {image} cannot be pulled: denied."
    )


def test_another_image_is_refused_with_docker_s_reason() -> None:
    for image in ("trainer:1", "localhost/trainer:1", "x-docker.pkg.dev/no-repository"):
        assert render_image_error(image, f"{image} cannot be pulled: not found", LOCATION) == (
            f"The image {image} cannot be pulled: not found."
        )
