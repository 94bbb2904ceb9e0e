"""Workflows with quotes, JSON, tags or formulas around the whole, and what each of them means.

`READ` and `REFUSED` are those of `odd_lines_signs`.
"""

from tests.aflowgym.dsl.odd_lines_signs import PAIR

READ = {
    PAIR: [
        '"Custom -> Review"',
        "'Custom -> Review'",
        "“Custom -> Review”",
        "‘Custom -> Review’",
        "«Custom -> Review»",
        "「Custom -> Review」",
        '"Custom" -> "Review"',
        '"Custom -> Review".',
        '  "Custom -> Review"  \n',
        'Workflow: "Custom -> Review"',
        "```\n'Custom -> Review'\n```",
        '{"workflow": "Custom -> Review"}',
        '{"dsl": "Custom -> Review"}',
        "{'workflow': 'Custom -> Review'}",
        '{"workflow":"Custom -> Review",}',
        '```json\n{"workflow": "Custom -> Review"}\n```',
        '{\n  "workflow": "Custom -> Review"\n}',
        '{"workflow": "Custom \\u2192 Review"}',
        '{"reason": "Review finds errors.", "workflow": "Custom -> Review"}',
        '{"Workflow": "Custom -> Review"}',
        '<workflow>{"workflow": "Custom -> Review"}</workflow>',
        "\\boxed{Custom -> Review}",
        "$Custom -> Review$",
        "<answer>Custom -> Review</answer>",
        "> Custom -> Review",
    ],
    'Custom("be brief") -> Review': [
        '{"workflow": "Custom(\\"be brief\\") -> Review"}',
        '"Custom("be brief") -> Review"',
        'Custom（"be brief"） -> Review',
        'Custom("be brief") then Review',
    ],
    'Custom("a \\"b\\"\\n**c** `d`") -> Review': [
        '{"workflow": "Custom(\\"a \\\\\\"b\\\\\\"\\\\n**c** `d`\\") -> Review"}',
        '**Custom("a \\"b\\"\\n**c** `d`") -> Review**',
        'Workflow: Custom("a \\"b\\"\\n**c** `d`") then Review',
    ],
}

REFUSED = [
    '{"workflow": "Custom -> Review", "then": "Revise"}',
    '{"workflow": "Custom -> Review", "repeat": 3}',
    '{"workflow": "Custom -> Review + Revise"}',
    '{"workflow": "Custom -> Review"} -> Revise',
    '{"workflow": ["Custom", "Review"]}',
    '"Custom -> Review" + "Revise"',
    '"Custom -> Review" "Revise"',
]
