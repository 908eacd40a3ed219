"""Makes the PDF and DOCX files of this folder: pip install reportlab fpdf2 fonttools python-docx; python make.py"""
import datetime
import io

import docx
import fpdf
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen import canvas
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

ENGLISH = ("The deploy window opens on Tuesday at nine. Whoever is on call watches the dashboards until noon, and rolls "
           "back with the script in the runbook if the error rate passes two percent.")
SECOND = "Backups are verified every Sunday by restoring them to the standby machine in Utrecht."
CHINESE = "部署窗口在星期二上午九点打开。值班的人看仪表板到中午。"


def font():
    """A font whose glyphs are boxes: the files need letters, not shapes."""
    names = {ord(c): f"uni{ord(c):04X}" for c in CHINESE}
    order = [".notdef", *sorted(set(names.values()))]
    pen = TTGlyphPen(None)
    pen.moveTo((100, 0)), pen.lineTo((100, 700)), pen.lineTo((900, 700)), pen.lineTo((900, 0)), pen.closePath()
    box = pen.glyph()
    b = FontBuilder(1000, isTTF=True)
    b.setupGlyphOrder(order)
    b.setupCharacterMap(names)
    b.setupGlyf({name: box for name in order})
    b.setupHorizontalMetrics({name: (1000, 100) for name in order})
    b.setupHorizontalHeader(ascent=800, descent=-200)
    b.setupNameTable({"familyName": "Boxes", "styleName": "Regular"})
    b.setupOS2()
    b.setupPost()
    out = io.BytesIO()
    b.save(out)
    return out


# ReportLab: flowing paragraphs, two pages, built-in fonts.
styles = getSampleStyleSheet()
SimpleDocTemplate("runbook.pdf", pagesize=A5, invariant=1).build(
    [Paragraph("Runbook", styles["Title"]), Paragraph(ENGLISH, styles["Normal"]), PageBreak(),
     Paragraph("Backups", styles["Heading1"]), Paragraph(SECOND, styles["Normal"])])

# fpdf2: an embedded font with Chinese letters.
open("/tmp/boxes.ttf", "wb").write(font().getvalue())
f = fpdf.FPDF()
f.creation_date = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
f.add_font("Boxes", "", "/tmp/boxes.ttf")
f.add_page()
f.set_font("Boxes", size=14)
f.multi_cell(0, 10, CHINESE)
f.output("chinese.pdf")

# ReportLab: a password is needed to open it.
c = canvas.Canvas("encrypted.pdf", encrypt="secret", invariant=1)
c.drawString(72, 720, ENGLISH)
c.save()

# A page without text, as a scanner makes it.
c = canvas.Canvas("scanned.pdf", invariant=1)
c.rect(72, 72, 300, 300, fill=1)
c.save()

# python-docx: headings, a table, a list.
d = docx.Document()
d.add_heading("Runbook", 0)
d.add_paragraph(ENGLISH)
d.add_heading("Backups", 1)
d.add_paragraph(SECOND)
d.add_heading("值班", 2)
d.add_paragraph(CHINESE)
t = d.add_table(rows=2, cols=2)
for (row, column), text in {(0, 0): "Host", (0, 1): "Role", (1, 0): "utrecht-2", (1, 1): "standby"}.items():
    t.cell(row, column).text = text
d.save("runbook.docx")
