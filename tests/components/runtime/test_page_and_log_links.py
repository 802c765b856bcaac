"""Links by target. What a target resolves to is in test_api_target.py."""

from vertex_training.runtime.page_and_log_links import GoogleCloudLinks

from vertex_api.resource_names import ResourceName


def test_a_cloud_pipeline_links_page_for_its_log() -> None:
    links = GoogleCloudLinks("acme")
    name = ResourceName.parse("projects/123/locations/europe-west4/trainingPipelines/7")
    assert links.get_log_command_or_pipeline_page_url(name) == links.get_job_page_url(name)
    assert links.get_job_page_url(name).endswith("/locations/europe-west4/training/7?project=acme")
