"""The decoder: what it reads and makes, and when it is asked."""

import torch
import torch.nn.functional as F

from propos.config import NetworkSettings
from propos.networks import Decoder, Decoding, Head, Parts, build_network

SETTINGS = NetworkSettings(backbone="resnet-small", hidden=8, dimension=4)
PARTS = Parts(projector=Head((8, 4)), decoder=Decoding((8,), side=4))
VIEWS = tuple(torch.rand(2, 6, 3, 8, 8, generator=torch.Generator().manual_seed(0)).unbind())


def network(parts=PARTS, seed=0):
    return build_network(SETTINGS, parts, channels=3, seed=seed)


def test_it_reads_directions_alone():
    decoder = Decoder(4, Decoding((8,), side=2), channels=3)
    made = decoder(torch.tensor([[1.0, 2.0, 0.0, 0.0], [2.0, 4.0, 0.0, 0.0]]))
    assert made.shape == (2, 12)
    torch.testing.assert_close(made[0], made[1])


def test_large_images_are_averaged_down_to_its_side_by_hand():
    decoder = Decoder(4, Decoding((), side=2), channels=1)
    view = torch.tensor([[0.0, 2.0, 5.0, 5.0], [4.0, 6.0, 5.0, 5.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 8.0]])
    assert decoder.wanted(view[None, None]).tolist() == [[3.0, 5.0, 1.0, 2.0]]
    small = view[None, None, :2, :2]
    assert decoder.wanted(small).tolist() == [[0.0, 2.0, 4.0, 6.0]]


def test_both_views_are_made_again_from_their_projections():
    twin = network()
    twin.begin_step()
    outputs = twin(VIEWS, None)
    for place in range(2):
        expected = F.avg_pool2d(VIEWS[place], 2).flatten(1)
        torch.testing.assert_close(outputs.pixels[place], expected)
        torch.testing.assert_close(outputs.reconstructions[place], twin.decoder(outputs.projections[place]))


def test_one_that_does_not_learn_is_not_asked():
    twin = network()
    twin.learn_only(("backbone", "projector"))
    twin.begin_step()
    outputs = twin(VIEWS, None)
    assert (outputs.pixels, outputs.reconstructions) == (None, None)
    assert not {id(parameter) for parameter in twin.decoder.parameters()} & {id(each) for each in twin.trained()}
    twin.learn_only(("decoder",))
    assert {id(each) for each in twin.trained()} == {id(parameter) for parameter in twin.decoder.parameters()}


def test_it_changes_nothing_that_is_drawn_before_it():
    alone = network(Parts(projector=Head((8, 4))))
    states = alone.state_dict(), network().state_dict()
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
