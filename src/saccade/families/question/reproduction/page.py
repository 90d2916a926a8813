"""The page of Table 1 of Seo et al. (2016): its tables and figures, and what goes beyond the paper."""

from __future__ import annotations

from collections.abc import Sequence

from saccade.families.question.published import SEO_2016
from saccade.families.question.reproduction.table1 import LEGEND
from saccade.show.report import Report, Section
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.page import reproduction_page, table_block


def hattnet_page(
    main: Sequence[PlainTable],
    looking: Sequence[PlainTable],
    beyond: Sequence[PlainTable],
    confirmed: Sequence[PlainTable],
    figures: Sequence[Drawing],
) -> Report:
    """Tables 1a and 1b, what the maps say, the figures, and what goes beyond the paper."""
    return reproduction_page(
        "Hierarchical attention networks, Table 1",
        f"{SEO_2016}, measured again. Numbers in the tables come from recorded runs that are part of saccade; "
        "what was computed on this machine says so.",
        [
            Section("Table 1", LEGEND, [table_block(table) for table in main]),
            Section("Where it looked", "", [table_block(table) for table in looking]),
            Section("Figures", "", [figure.block() for figure in figures]),
            Section("Beyond the paper", "", [table_block(table) for table in beyond]),
            Section("Checked on this machine", "", [table_block(table) for table in confirmed]),
        ],
        again="From the records, or by training what has no run yet.",
        commands=(
            "saccade reproduce hattnet-table1 --out reproduction",
            "saccade reproduce hattnet-table1 --train --seeds 3 --out reproduction",
        ),
    )
