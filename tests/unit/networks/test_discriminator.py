"""The discriminator: what it reads and scores, where its places come from, and when it is asked."""

import pytest
import torch
import torch.nn.functional as F

from propos.config import NetworkSettings
from propos.networks import Discriminating, Discriminator, Head, Parts, build_network
from propos.networks.discriminator import places_of

SETTINGS = NetworkSettings(backbone="resnet-small", hidden=8, dimension=4)
HEADS = {"projector": Head((4,)), "cluster_head": Head((3,))}
PARTS = Parts(**HEADS, discriminator=Discriminating(5))
VIEWS = tuple(torch.rand(2, 6, 3, 8, 8, generator=torch.Generator().manual_seed(0)).unbind())


def network(parts=PARTS):
    return build_network(SETTINGS, parts, channels=3, seed=0)


def test_it_scores_as_convolutions_of_one_place_over_maps_and_what_is_said_side_by_side():
    draw = torch.Generator().manual_seed(1)
    maps, said = torch.randn(4, 6, 3, 2, generator=draw), torch.randn(4, 5, generator=draw)
    others = torch.tensor([[0, 2], [1, 1], [3, 0], [2, 3]])
    discriminator = Discriminator(6, 5, Discriminating(7))
    found = discriminator(maps.flatten(2).transpose(1, 2), said, others)
    layers = [layer.weight[..., None, None] for layer in (discriminator.first, discriminator.second)]
    for image, row in enumerate(others):
        for place, other in enumerate(row):
            both = torch.cat([maps[other], said[image, :, None, None].expand(-1, 3, 2)])[None]
            hidden = F.relu(F.conv2d(F.relu(F.conv2d(both, layers[0])), layers[1]))
            expected = F.conv2d(hidden, discriminator.score.weight[..., None, None])
            torch.testing.assert_close(found[image, place], expected.flatten())


def test_places_are_averages_of_a_map_by_hand():
    maps = torch.tensor([[0.0, 2.0, 5.0, 5.0], [4.0, 6.0, 5.0, 5.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 8.0]])
    both = torch.stack([maps, 2 * maps])[None]
    assert places_of(both)[0].tolist() == [[3.0, 6.0], [5.0, 10.0], [1.0, 2.0], [2.0, 4.0]]


def test_there_are_at_most_sixteen_places_a_side_and_at_least_one():
    assert [places_of(torch.zeros(1, 2, side, side)).shape[1] for side in (1, 3, 8, 32, 56, 96)] == [
        *(1, 1, 16, 256, 196, 256)
    ]


def test_it_is_given_what_the_first_stage_made_of_both_views():
    twin = network()
    twin.begin_step()
    seen = []
    twin.online.backbone.layer1[-1].register_forward_hook(lambda _, given, made: seen.append(made.detach().clone()))
    outputs = twin(VIEWS, None)
    assert outputs.discriminator is twin.discriminator
    for place in range(2):
        expected = F.avg_pool2d(seen[place], 2).flatten(2).transpose(1, 2)
        torch.testing.assert_close(outputs.places[place], expected)


def test_features_are_the_same_whether_or_not_places_are_asked_for():
    asked, alone = network(), network(Parts(**HEADS))
    for twin in (asked, alone):
        twin.begin_step()
    features = [twin(VIEWS, None).features for twin in (asked, alone)]
    assert all(torch.equal(one, other) for one, other in zip(*features, strict=True))


def test_one_that_does_not_learn_is_not_asked():
    twin = network()
    twin.learn_only(("backbone", "projector", "cluster_head"))
    twin.begin_step()
    outputs = twin(VIEWS, None)
    assert (outputs.places, outputs.discriminator) == (None, None)
    own = {id(parameter) for parameter in twin.discriminator.parameters()}
    assert not own & {id(parameter) for parameter in twin.trained()}
    twin.learn_only(("discriminator",))
    assert {id(parameter) for parameter in twin.trained()} == own


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own, which it hides where warnings are none
def test_a_compiled_backbone_makes_the_same_places_and_features_of_both_its_halves():
    made = []

    def counting(graph, _):
        made.append(graph)
        return graph.forward

    plain, compiled = network(), network()
    compiled.compile_backbones(backend=counting)
    for twin in (plain, compiled):
        twin.begin_step()
    ours, theirs = plain(VIEWS, None), compiled(VIEWS, None)
    assert len(made) == 2
    for name in ("places", "features", "assignments"):
        for one, other in zip(getattr(ours, name), getattr(theirs, name), strict=True):
            torch.testing.assert_close(one, other)
    torch.testing.assert_close(plain.eval().online.backbone(VIEWS[0]), compiled.eval().online.backbone(VIEWS[0]))
    torch._dynamo.reset()


def test_it_changes_nothing_that_is_drawn_before_it():
    states = network(Parts(**HEADS)).state_dict(), network().state_dict()
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
